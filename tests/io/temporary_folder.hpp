// SPDX-License-Identifier: Apache-2.0
// temporary_folder.hpp: tests of files run in a fresh folder that is removed afterwards.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/error.hpp"

namespace qrtool {

/// The working folder of a test is its own, so that messages name files without a path.
class TemporaryFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "qrtool-test-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

  /// The names in the folder, sorted; hidden ones too.
  static std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(".")) {
      found.push_back(entry.path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::filesystem::path folder_;

 private:
  std::filesystem::path before_;
};

inline void write_bytes(const std::string& name, const std::string& bytes) {
  std::filesystem::remove(name);  // some file systems wait for the disk where a file is cut
  std::ofstream(name, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// "what | hint" of the E that `action` throws.
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

template <class T>
std::vector<T> poisoned(index_t elements) {
  return std::vector<T>(static_cast<std::size_t>(elements), std::numeric_limits<T>::quiet_NaN());
}

}  // namespace qrtool
