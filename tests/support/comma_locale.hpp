// comma_locale: while it lives, the program has a locale whose numbers have a comma, as programs in
// most of Europe do. It is made by localedef, as test machines have none; where that is missing the
// locale is not there, and the test is skipped.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lev::test {

class comma_locale {
 public:
  comma_locale() : folder_(testing::TempDir() + "leveret-locale-" + std::to_string(getpid())) {
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ + "/source")
        << "comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \",\"\n"
           "thousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
    const std::string command = "localedef -c -f ANSI_X3.4-1968 -i " + folder_ + "/source " +
                                folder_ + "/comma >/dev/null 2>&1";
    // It warns of the categories that are not there, and says so in its status.
    [[maybe_unused]] const int how = std::system(command.c_str());
    setenv("LOCPATH", folder_.c_str(), 1);
    is_there_ = std::setlocale(LC_ALL, "comma") != nullptr;
  }
  ~comma_locale() {
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    std::filesystem::remove_all(folder_);
  }
  comma_locale(comma_locale&&) = delete;
  bool is_there() const { return is_there_; }

 private:
  std::string folder_;
  bool is_there_ = false;
};

}  // namespace lev::test
