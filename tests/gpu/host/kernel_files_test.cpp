// SPDX-License-Identifier: Apache-2.0
// kernel_files_test.cpp: kernels on disk are used again where they are whole, and never where they
// are damaged, of another key, or out of reach.
#include "gpu/host/kernel_files.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/cuda_fixture.hpp"
#include "tests/support/temporary_directory.hpp"

namespace qrtool::test::kernel_files_test {
namespace {

namespace fs = std::filesystem;

/// Sets a variable of the environment until the end of the scope; null: unsets it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

/// That of the caller, or one that stays as long as the program.
const char* directory_of_pocl() {
  static const TemporaryDirectory own;
  const char* const given = std::getenv("POCL_CACHE_DIR");
  return given != nullptr ? given : own.path().c_str();
}

class KernelFiles : public testing::Test {
 protected:
  fs::path folder() const { return directory / "qrtool"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> list;
    if (!fs::exists(folder())) return list;
    for (const auto& entry : fs::directory_iterator(folder())) list.push_back(entry.path());
    return list;
  }

  TemporaryDirectory directory;
  /// PoCL keeps its kernels where they were at its first build, or else in XDG_CACHE_HOME.
  Variable of_pocl{"POCL_CACHE_DIR", directory_of_pocl()};
  Variable cache{"XDG_CACHE_HOME", directory.path().c_str()}, is_off{"QRTOOL_CACHE", nullptr};
};

const std::string image("an image\0with\nall\xff bytes", 24);

TEST_F(KernelFiles, AreKeptUnderTheirKey) {
  EXPECT_FALSE(kept_kernels("key"));
  keep_kernels("key", image);
  EXPECT_EQ(kept_kernels("key"), image);
  EXPECT_FALSE(kept_kernels("kez"));
  keep_kernels("key", "another");
  EXPECT_EQ(kept_kernels("key"), "another");
  EXPECT_EQ(files().size(), 1U);
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
}

TEST_F(KernelFiles, AreOfNoUseWhenDamaged) {
  keep_kernels("key", image);
  const fs::path path = files().at(0);
  const std::string whole = read_text(path.string());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_text(path.string(), damaged);
    EXPECT_FALSE(kept_kernels("key")) << "byte " << at;
    write_text(path.string(), whole.substr(0, at));
    EXPECT_FALSE(kept_kernels("key")) << "only " << at << " bytes";
  }
  write_text(path.string(), whole + "x");
  EXPECT_FALSE(kept_kernels("key"));
  keep_kernels("key", image);
  EXPECT_EQ(kept_kernels("key"), image);
}

TEST_F(KernelFiles, OfAnotherKeyAreOfNoUse) {
  keep_kernels("key", image);
  const fs::path path = files().at(0);
  keep_kernels("other", "image of other");
  for (const fs::path& each : files())
    if (each != path) fs::copy_file(each, path, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(kept_kernels("key"));
  EXPECT_EQ(kept_kernels("other"), "image of other");
}

TEST_F(KernelFiles, AreNotWrittenWhereTheyMayNotBe) {
  {
    const Variable off("QRTOOL_CACHE", "off");
    keep_kernels("key", image);
    EXPECT_FALSE(kept_kernels("key"));
  }
  EXPECT_TRUE(files().empty());
  {
    const Variable relative("XDG_CACHE_HOME", "relative"), home("HOME", nullptr);
    keep_kernels("key", image);
    EXPECT_FALSE(fs::exists("relative"));
  }
  // A file where the folder should be, as root may write to any folder.
  write_text(folder().string(), "");
  keep_kernels("key", image);
  EXPECT_FALSE(kept_kernels("key"));
}

TEST_F(KernelFiles, AreWholeWhileOthersWrite) {
  const std::string large(1 << 20, 'k');
  keep_kernels("key", large);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn) keep_kernels("key", large);
    });
  for (int turn = 0; turn < 60; ++turn) EXPECT_TRUE(kept_kernels("key") == large);
  threads.clear();
  EXPECT_EQ(files().size(), 1U);
}

/// Whether the driver has built a program, or found it on disk.
bool builds(const DeviceContext& context, const std::string& text) {
  Words::set("");
  context.build(text, mixed_options);
  return Words::calls("cuLinkAddData_v2") > 0;
}

TEST_F(KernelFiles, SpareTheDriverABuild) {
  SKIP_WITHOUT_STAND_IN();
  const auto context = open_cuda_context(*cuda_device());
  const std::string text(mixed_text);
  EXPECT_TRUE(builds(*context, text));
  EXPECT_FALSE(builds(*context, text));
  EXPECT_TRUE(builds(*context, text + "\n"));
  const Variable off("QRTOOL_CACHE", "off");
  EXPECT_TRUE(builds(*context, text));
}

/// The words of the file are right, but the driver does not take the image.
TEST_F(KernelFiles, ThatADriverRefusesAreMadeAgain) {
  SKIP_WITHOUT_STAND_IN();
  const auto context = open_cuda_context(*cuda_device());
  const std::string text(mixed_text);
  EXPECT_TRUE(builds(*context, text));
  const Words words("fail=cuModuleLoadDataEx:1:200");
  context->kernel(context->build(text, mixed_options), "add_one");
  EXPECT_EQ(Words::calls("cuModuleLoadDataEx"), 2U);
}

/// Two processes at once, in an empty cache.
TEST_F(KernelFiles, ServeSeveralProcesses) {
  SKIP_WITHOUT_STAND_IN();
  const std::string input = directory / "a.npy";
  const auto run = [](const std::string& command) { return std::system(command.c_str()); };
  ASSERT_EQ(run(QRTOOL_BINARY " generate --shape 20x12x5 " + input + " > /dev/null"), 0);
  const auto factor = [&](int process) {
    return run(QRTOOL_BINARY " factor --backend opencl --device cuda:0 " + input + " " +
               (directory / std::to_string(process)) + ".npz > /dev/null");
  };
  int codes[2] = {-1, -1};
  {
    std::jthread first([&] { codes[0] = factor(0); }), second([&] { codes[1] = factor(1); });
  }
  EXPECT_EQ(codes[0], 0);
  EXPECT_EQ(codes[1], 0);
  for (const fs::path& file : files())
    EXPECT_TRUE(file.extension() == ".kernels" || file.extension() == ".json") << file;
}

}  // namespace
}  // namespace qrtool::test::kernel_files_test
