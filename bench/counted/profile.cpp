// Runs callgrind, and reads what it writes: "fn=(id) name" begins a function, each line after it is
// "place instructions", and the line after "calls=" is of the function called.
#include "counted/profile.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace bench::counted {
namespace {

// "lev::run_one(lev::engine&, ...)" without its arguments and the names that say nothing.
std::string short_name(std::string name) {
  for (const char* noise : {"(anonymous namespace)::", "detail::", "lev::"}) {
    const std::string what = noise;
    for (std::size_t at; (at = name.find(what)) != std::string::npos;) name.erase(at, what.size());
  }
  const std::size_t arguments = name.find('(', 1);
  return arguments == std::string::npos ? name : name.substr(0, arguments);
}

// "(12) name" names function 12, and "(12)" is that one.
std::string function_named(const std::string& text, std::map<std::string, std::string>& names) {
  const std::size_t end = text.find(')') + 1;
  const std::string id = text.substr(0, end);
  if (end < text.size()) names[id] = short_name(text.substr(end + 1));
  return names[id];
}

// A folder of its own, gone at the end.
class own_folder {
 public:
  own_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "leveret-count-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for profiles");
    path_ = name;
  }
  ~own_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  own_folder(own_folder&&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

void run_callgrind(const std::string& out, const std::string& program, const char* name) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork() does not work");
  if (child == 0) {
    const std::string file = "--callgrind-out-file=" + out;
    execlp("valgrind", "valgrind", "--tool=callgrind", "--quiet", "--collect-atstart=no",
           "--toggle-collect=lev_bench_counted", "--dump-after=lev_bench_counted", file.c_str(),
           program.c_str(), "--run", name, nullptr);
    _exit(127);
  }
  int how = 0;
  waitpid(child, &how, 0);
  if (WIFEXITED(how) && WEXITSTATUS(how) == 127)
    throw std::runtime_error("valgrind counts the instructions: apt-get install valgrind");
  if (how != 0) throw std::runtime_error(std::string("valgrind did not run the case ") + name);
}

}  // namespace

profile read_profile(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("callgrind wrote no " + path);
  profile found;
  std::map<std::string, std::string> names;
  std::string current;
  bool is_called = false;
  for (std::string text; std::getline(file, text);) {
    if (text.rfind("fn=", 0) == 0) {
      current = function_named(text.substr(3), names);
    } else if (text.rfind("cfn=", 0) == 0) {
      function_named(text.substr(4), names);
    } else if (text.rfind("calls=", 0) == 0) {
      is_called = true;
    } else if (!text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 ||
                                 text[0] == '+' || text[0] == '-' || text[0] == '*')) {
      if (!is_called) found[current] += std::atof(text.substr(text.rfind(' ') + 1).c_str());
      is_called = false;
    }
  }
  return found;
}

double total(const profile& all) {
  double sum = 0;
  for (const auto& [name, count] : all) sum += count;
  return sum;
}

profile count_case(const counted_case& which, const std::string& program) {
  const own_folder folder;
  const std::string out = (folder.path() / "profile").string();
  run_callgrind(out, program, which.name);
  const profile less = read_profile(out + ".1");
  profile each = read_profile(out + ".2");
  for (const auto& [name, count] : less) each[name] -= count;
  for (auto& [name, count] : each) count /= which.tasks;
  return each;
}

}  // namespace bench::counted
