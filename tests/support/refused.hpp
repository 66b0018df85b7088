// expect_refused: a call must throw a lev::error of a code, whose sentence has some words.
#pragma once

#include <gtest/gtest.h>
#include <leveret/status.hpp>

#include <source_location>
#include <string>

namespace lev::test {

// Returns the number of the argument that the error names; -1: none.
template <class Call>
int expect_refused(status code, const char* says, const Call& call,
                   std::source_location at = std::source_location::current()) {
  const ::testing::ScopedTrace here(at.file_name(), static_cast<int>(at.line()), "it is refused");
  try {
    call();
    ADD_FAILURE() << "was not refused";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    return e.argument();
  }
  return -1;
}

}  // namespace lev::test
