"""A chemist's run over many molecules with a C library that some of them upset.

One molecule makes the library read through a null pointer, one makes it loop without an end, one
makes it free memory twice. All others are done; each bad one is named, with what it did.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import leveret

LIBRARY = r"""
/* A small parser of molecules written as text, with the bugs that such libraries have. */
#include <stdlib.h>
#include <string.h>

enum { rings_max = 8 };

/* The number of heavy atoms in a line such as "c1ccccc1O"; -1 for a letter that is no atom. */
int count_atoms(const char* text) {
  int* open[10] = {0}; /* where each ring was opened */
  int atoms = 0;
  for (const char* p = text; *p != 0; ++p) {
    if (strchr("BCNOPSFIbcnops", *p) != NULL) {
      ++atoms;
    } else if (*p == '%') { /* a ring that was never opened: reads through a null pointer */
      atoms += *open[9];
    } else if (*p == '(' && p[1] == '(') { /* a branch in a branch: waits for a third one */
      for (volatile const char* q = p; *q != ')';) {
      }
    } else if (*p == '[') { /* brackets: frees its buffer twice */
      char* volatile kept = malloc(rings_max);
      free(kept);
      free(kept);
    } else if (strchr("()=#]123456789", *p) == NULL) {
      return -1;
    }
  }
  return atoms;
}
"""


def build(folder: str) -> str:
    """Compiles the library; a real program has one that is installed."""
    source, library = Path(folder, "molecules.c"), f"{folder}/molecules.so"
    source.write_text(LIBRARY)
    compiler = shutil.which("cc") or "gcc"
    command = [compiler, "-O1", "-w", "-shared", "-fPIC", "-o", library, str(source)]
    subprocess.run(command, check=True)
    return library


def count_atoms(library: str, text: str) -> int:
    """Runs one call; a ValueError is an error like any other."""
    atoms: int = ctypes.CDLL(library).count_atoms(text.encode())
    if atoms < 0:
        raise ValueError(f"{text}: not a molecule")
    return atoms


molecules = ["CCO", "c1ccccc1O", "CC%9", "C1CC1", "C((C", "xyz", "CC[O]", "O=C=O"] + ["CCO"] * 92

with tempfile.TemporaryDirectory() as folder:
    library = build(folder)
    with leveret.ProcessExecutor(2, timeout=5, max_attempts=1) as executor:
        futures = [executor.submit(count_atoms, library, each) for each in molecules]
        outcomes = [future.exception() or future.result() for future in futures]

for molecule, outcome in list(zip(molecules, outcomes))[:8]:
    print(f"{molecule:10} {outcome}")

good = [each for each in outcomes if isinstance(each, int)]
assert len(good) == 96 and good[:4] == [3, 7, 3, 3]
assert [type(outcomes[i]).__name__ for i in (2, 4, 5, 6)] == [
    "Poison",
    "Overran",
    "ValueError",
    "Poison",
]
assert "count_atoms(" in str(outcomes[2]) and "SIGSEGV" in str(outcomes[2])
assert "SIGABRT" in str(outcomes[6])
