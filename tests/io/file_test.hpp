// SPDX-License-Identifier: Apache-2.0
// file_test.hpp: tests of files run in an empty directory of their own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/error.hpp"
#include "tests/support/temporary_directory.hpp"

namespace qrtool {

using test::read_text;
using test::write_text;

/// Runs each test with a temporary directory as the working directory, so that messages name files
/// without a path.
class FileTest : public testing::Test {
 protected:
  FileTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory_.path());
  }
  ~FileTest() override { std::filesystem::current_path(before_); }

  std::vector<std::string> names() const { return directory_.names(); }

 private:
  test::TemporaryDirectory directory_;
  std::filesystem::path before_;
};

/// Runs `action` and returns the text "what | hint" of the E that it throws.
template <class E, class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what() + (error.hint().empty() ? "" : " | " + error.hint());
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return error.what();
  }
  return "no error";
}

/// `elements` NaN, so that a test sees an element that was not written.
template <class T>
std::vector<T> poisoned(index_t elements) {
  return std::vector<T>(static_cast<std::size_t>(elements), std::numeric_limits<T>::quiet_NaN());
}

}  // namespace qrtool
