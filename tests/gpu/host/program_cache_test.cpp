// SPDX-License-Identifier: Apache-2.0
// program_cache_test.cpp: each program is built once, and an error message has the line that the
// compiler rejected.
#include "gpu/host/program_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "gpu/host/kernel_sources.hpp"
#include "gpu/host/opencl.hpp"
#include "gpu/host/session.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::program_cache_test {
namespace {

class Programs : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};

const Defines floats{{"STORED", "float"}, {"REAL", "float"}, {"SIZE", "4"}};
const Defines doubles{{"STORED", "double"}, {"REAL", "double"}, {"SIZE", "4"}};

TEST_F(Programs, AreBuiltOncePerSetOfDefines) {
  ProgramCache& programs = session_for(device_under_test()).programs;
  const Program first = programs.get("gpu/reflectors/textbook/textbook.cl", floats, "test");
  const std::size_t size = programs.size();
  EXPECT_EQ(programs.get("gpu/reflectors/textbook/textbook.cl", floats, "test"), first);
  EXPECT_EQ(programs.size(), size);
  EXPECT_NE(programs.get("gpu/reflectors/textbook/textbook.cl", doubles, "test"), first);
  EXPECT_EQ(programs.size(), size + 1);
}

TEST_F(Programs, ThreadsShareOneBuild) {
  const DeviceInfo device = device_under_test();
  const Defines own{{"STORED", "float"}, {"REAL", "float"}, {"SIZE", "6"}};
  const std::size_t before = session_for(device).programs.size();
  std::array<Program, 4> got;
  {
    std::vector<std::jthread> threads;
    for (Program& program : got) {
      threads.emplace_back([&] {
        program =
            session_for(device).programs.get("gpu/reflectors/textbook/textbook.cl", own, "test");
      });
    }
  }
  for (const Program& program : got) EXPECT_EQ(program, got[0]);
  EXPECT_EQ(session_for(device).programs.size(), before + 1);
}

cl::Program program_of(const Kernel& kernel) {
  return cl::Kernel(static_cast<cl_kernel>(kernel.handle.get()), /*retainObject=*/true)
      .getInfo<CL_KERNEL_PROGRAM>();
}

/// The kernels of the check that a run needs, in a cache of its own that builds in parts.
class Parts : public Programs {
 protected:
  void SetUp() override {
    Programs::SetUp();
    if (IsSkipped()) return;
    const DeviceInfo device = device_under_test();
    Session& session = session_for(device);
    programs_.emplace(*session.context, device);
  }

  void prepare(const BuilderLimits& limits = {}) {
    programs_->set_builders(true, limits);
    programs_->prepare(std::array{wanted_});
  }
  std::size_t kernels_beside(const std::string& name) {
    return program_of(programs_->kernel(wanted_.source, name)).getInfo<CL_PROGRAM_NUM_KERNELS>();
  }

  static constexpr std::array<std::string_view, 2> heavy_{"measure_gram", "measure_rows"};
  WantedKernels wanted_{.source = {.file = "gpu/check/check.cl",
                                   .defines = {{"STORED", "float"}, {"FACTOR", "float"}},
                                   .user = "the test"},
                        .kernels = {"measure_gram", "measure_r", "finish_errors"},
                        .heavy = heavy_};
  std::optional<ProgramCache> programs_;
};

TEST_F(Parts, AHeavyKernelIsAProgramAndTwoOthersAreOne) {
  EXPECT_FALSE(programs_->has(wanted_.source.file, wanted_.source.defines));
  prepare();
  EXPECT_TRUE(programs_->has(wanted_.source.file, wanted_.source.defines));
  EXPECT_EQ(kernels_beside("measure_gram"), 1U);
  EXPECT_EQ(kernels_beside("measure_r"), 2U);
  EXPECT_EQ(kernels_beside("finish_errors"), 2U);
  EXPECT_EQ(programs_->size(), 0U);
}

TEST_F(Parts, OfOtherKernelsHaveAtMostThree) {
  wanted_.kernels = {"combine_gram", "finish_errors", "measure_gram", "measure_r",
                     "measure_residual"};
  EXPECT_FALSE(programs_->has(wanted_));
  prepare();
  EXPECT_TRUE(programs_->has(wanted_));
  EXPECT_EQ(kernels_beside("measure_gram"), 1U);
  for (const char* other : {"combine_gram", "finish_errors", "measure_r", "measure_residual"})
    EXPECT_EQ(kernels_beside(other), 2U);
  wanted_.kernels.insert("form_q_from_reflectors");
  EXPECT_FALSE(programs_->has(wanted_));
}

TEST_F(Parts, AreBuiltOnce) {
  prepare();
  const Kernel before = programs_->kernel(wanted_.source, "measure_r");
  wanted_.kernels.insert("measure_residual");
  prepare();
  EXPECT_EQ(program_of(programs_->kernel(wanted_.source, "measure_r"))(), program_of(before)());
  EXPECT_EQ(kernels_beside("measure_residual"), 1U);
}

TEST_F(Parts, AKernelThatNobodyPreparedComesFromTheWholeFile) {
  prepare();
  EXPECT_GT(kernels_beside("measure_residual"), 4U);
  EXPECT_EQ(programs_->size(), 1U);
}

TEST_F(Parts, AreBuiltWithBuildersThatFail) {
  prepare({.command = {"/bin/false"}, .most_processes = 2});
  EXPECT_EQ(kernels_beside("measure_gram"), 1U);
  EXPECT_EQ(kernels_beside("measure_r"), 2U);
}

TEST_F(Parts, AreBuiltWithBuildersThatWork) {
  prepare({.command = {QRTOOL_BINARY, "--build-kernels"}, .most_processes = 2});
  EXPECT_EQ(kernels_beside("measure_gram"), 1U);
  EXPECT_EQ(kernels_beside("measure_r"), 2U);
}

TEST_F(Parts, FailureNamesTheVariantAndTheRestCanBeBuiltLater) {
  wanted_.source.defines["STORED"] = "no_such_type";
  try {
    prepare({.command = {QRTOOL_BINARY, "--build-kernels"}, .most_processes = 2});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_type"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("the test"), std::string::npos) << error.what();
  }
  wanted_.source.defines["STORED"] = "float";
  prepare();
  EXPECT_EQ(kernels_beside("measure_gram"), 1U);
}

TEST_F(Programs, FailureNamesVariantDeviceAndLine) {
  const DeviceInfo device = device_under_test();
  std::string text;
  for (const KernelSource& source : kernel_sources()) {
    if (source.name == "gpu/reflectors/textbook/textbook.cl") text = source.text;
  }
  // The line number counts the lines of the file itself, without the included files.
  const std::size_t kernel = text.find("__kernel");
  ASSERT_NE(kernel, std::string::npos);
  text.insert(kernel, "no_such_type x;\n");
  try {
    session_for(device).programs.build(text, floats, "opencl/textbook");
    FAIL();
  } catch (const DeviceError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("opencl/textbook"), std::string::npos) << what;
    EXPECT_NE(what.find(device.name), std::string::npos) << what;
    EXPECT_NE(what.find("no_such_type"), std::string::npos) << what;
    const std::size_t file = text.rfind("#line", kernel);
    const auto line = std::stoi(text.substr(file + 6)) - 1 +
                      std::count(text.begin() + static_cast<std::ptrdiff_t>(file),
                                 text.begin() + static_cast<std::ptrdiff_t>(kernel), '\n');
    // NVIDIA's compiler ignores #line and counts the lines of the whole text.
    if (what.find("<kernel>:") != std::string::npos) return;
    EXPECT_NE(what.find("textbook.cl:" + std::to_string(line)), std::string::npos) << what;
  }
}

TEST_F(Programs, IncludesAreExpanded) {
  const std::filesystem::recursive_directory_iterator files(QRTOOL_SOURCE_DIR "/gpu");
  const auto is_kernel = [](const auto& file) { return file.path().extension() == ".cl"; };
  const auto kernels = std::count_if(begin(files), end(files), is_kernel);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(kernel_sources().size()), kernels);
  for (const KernelSource& source : kernel_sources()) {
    EXPECT_EQ(source.text.find("#include"), std::string_view::npos) << source.name;
    EXPECT_EQ(source.text.find("\\\\\n"), std::string_view::npos) << source.name;
  }
}

}  // namespace
}  // namespace qrtool::test::program_cache_test
