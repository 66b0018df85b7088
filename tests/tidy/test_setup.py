"""Tests of scripts/lib/setup.sh, on a system of stubs: what it has is what its folder has."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2] / "scripts/lib/setup.sh"
REAL = "bash cat cut dirname env grep head mkdir rm sed sha256sum sort tail touch chmod"
PRESENT = "g++ python3 pkg-config spin"

# Knows one package, and installs nothing before an interrupted installation is at its end.
APT_GET = """#!/usr/bin/env bash
[ "$1" = update ] && exit 0
echo "apt-get $*" >>"$CALLS"
if [ -e "$INTERRUPTED" ]; then
  echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"
  exit 100
fi
[[ " $* " = *" ninja-build "* ]] && touch "$STUBS/ninja" && chmod +x "$STUBS/ninja"
exit 0
"""
DPKG = """#!/usr/bin/env bash
echo "dpkg $*" >>"$CALLS"
rm -f "$INTERRUPTED"
"""


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="leveret-setup-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.stubs = self.folder / "stubs"
        self.stubs.mkdir()
        for name in REAL.split():
            (self.stubs / name).symlink_to(shutil.which(name))
        for name in PRESENT.split():
            self.stub(name, "#!/usr/bin/env bash\n[ -t 0 ] || cat >/dev/null\n")
        self.stub("cmake", "#!/usr/bin/env bash\necho cmake version 3.25.1\n")
        self.stub("dpkg-query", "#!/usr/bin/env bash\nprintf 'install ok installed'\n")
        self.stub("dpkg", DPKG)
        self.stub("apt-get", APT_GET)
        self.user("0")
        place = self.folder / "scripts/lib/setup.sh"
        place.parent.mkdir(parents=True)
        shutil.copy(SETUP, place)
        binaries = self.folder / ".venv/bin"
        binaries.mkdir(parents=True)
        (binaries / "activate").write_text(str(self.folder / ".venv"))
        (binaries / "python").symlink_to(self.stubs / "python3")
        self.setup = place

    def stub(self, name, text):
        (self.stubs / name).write_text(text)
        (self.stubs / name).chmod(0o755)

    def user(self, number):
        self.stub("id", f"#!/usr/bin/env bash\necho {number}\n")

    def run_setup(self):
        names = {"CALLS": "calls", "INTERRUPTED": "interrupted", "STUBS": "stubs"}
        given = {name: str(self.folder / each) for name, each in names.items()}
        command = [shutil.which("bash"), self.setup, "packages"]
        return subprocess.run(
            command,
            check=False,
            env={**given, "PATH": str(self.stubs)},
            capture_output=True,
            text=True,
        )

    def calls(self):
        place = self.folder / "calls"
        return place.read_text().splitlines() if place.exists() else []

    def test_what_is_missing_is_installed_once(self):
        done = self.run_setup()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertEqual(done.stdout, "setup: installing ninja-build\n")
        self.assertEqual(self.run_setup().stdout, "")
        self.assertEqual(len(self.calls()), 1)

    def test_an_interrupted_installation_is_brought_to_an_end(self):
        (self.folder / "interrupted").touch()
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done)
        did = [" ".join(each.split()[:2]) for each in self.calls()]
        self.assertEqual(did, ["apt-get install", "dpkg --configure", *["apt-get install"] * 2])

    def test_without_root_it_says_what_to_install(self):
        self.user("1000")
        done = self.run_setup()
        self.assertEqual(done.returncode, 3)
        self.assertIn("run as root: apt-get install ninja-build\n", done.stderr)
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main()
