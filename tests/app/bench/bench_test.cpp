// SPDX-License-Identifier: Apache-2.0
// bench_test.cpp: tests the command as users call it, but never how long a run took.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/bench/contestants/lapack_systems.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "tests/support/run_tool.hpp"

namespace qrtool::bench_test {
namespace {

using test::read_text;
using test::run_tool;
using test::TemporaryDirectory;
using test::ToolResult;

const std::vector<std::string> tiny{"bench", "--shape", "8x8", "--batch", "4", "--backend", "cpu"};

std::vector<std::string> tiny_with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = tiny;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Bench, ATinyRunAsAUserMakesIt) {
  const ToolResult done = run_tool(tiny);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_NE(done.out.find("\n8x8             4  cpu/"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("eigen ms"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find("above their bar"), std::string::npos) << done.out;
}

TEST(Bench, RawFactorsAndLapacksSignsOfAnyKindAreMeasured) {
  for (const std::string mode : {"raw", "reduced"}) {
    const ToolResult done = run_tool(tiny_with({"--mode", mode, "--sign", "lapack", "--kind",
                                                "clustered", "--against", "none", "--json"}));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto json = nlohmann::json::parse(done.out);
    EXPECT_EQ(json["mode"], mode);
    EXPECT_EQ(json["sign"], "lapack");
    EXPECT_EQ(json["kind"], "clustered");
  }
}

TEST(Bench, ComplexMatricesOfBothTypesInEveryMode) {
  for (const std::string precision : {"single", "double"})
    for (const std::string mode : {"reduced", "r", "raw"}) {
      const ToolResult done =
          run_tool(tiny_with({"--complex", "--precision", precision, "--mode", mode, "--kind",
                              "gauss,clustered", "--seeds", "2", "--json"}));
      ASSERT_EQ(done.exit_code, 0) << done.err;
      const auto json = nlohmann::json::parse(done.out);
      EXPECT_EQ(json["precision"], precision == "single" ? "complex64" : "complex128");
      for (const auto& one : json["cases"]) {
        EXPECT_EQ(one["variant"], "cpu/complex");
        EXPECT_EQ(one["failed"], 0);
        EXPECT_GT(one["baselines"]["eigen"]["speed_up"], 0);
        if (mode == "r") continue;
        EXPECT_GT(one["error_worst"], 0);
        EXPECT_LT(one["error_worst"], precision == "single" ? 1e-4 : 1e-13) << one;
      }
    }
}

TEST(Bench, ComplexVariantsHaveColumnsAndRealOnesNone) {
  const ToolResult done = run_tool(tiny_with({"--complex", "--against", "variants,cpu"}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("complex64, mode reduced"), std::string::npos) << done.out;
  for (const char* name : {"  cpu/complex ms", "  cpu/eigen ms", "  cpu ms"})
    EXPECT_NE(done.out.find(name), std::string::npos) << name << done.out;
  EXPECT_EQ(done.out.find("cpu/batched"), std::string::npos) << done.out;
}

TEST(Bench, AComplexBatchStaysOnADevice) {
  for (const std::string mode : {"reduced", "r", "raw"}) {
    const ToolResult done =
        run_tool({"bench", "--complex", "--json", "--backend", "opencl", "--shape", "20x7",
                  "--batch", "5", "--mode", mode, "--against", "from-host"});
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto json = nlohmann::json::parse(done.out);
    const auto& one = json["cases"][0];
    EXPECT_EQ(json["precision"], "complex64");
    EXPECT_TRUE(one["variant"].get<std::string>().starts_with("opencl/")) << one["variant"];
    EXPECT_EQ(one["failed"], 0);
    EXPECT_GT(one["check_seconds"], 0);
    EXPECT_GT(one["baselines"]["from-host"]["speed_up"], 0);
    if (mode == "r") continue;
    EXPECT_LT(one["error_worst"], 1e-4) << one;
    EXPECT_GT(one["error_worst"], 0) << one;
  }
}

TEST(Bench, AsManyRunsAreTimedAsAreAskedFor) {
  for (const std::size_t runs : {1, 37}) {
    const ToolResult done = run_tool(tiny_with({"--runs", std::to_string(runs), "--json"}));
    ASSERT_EQ(done.exit_code, 0) << done.err;
    for (const auto& one : nlohmann::json::parse(done.out)["cases"])
      EXPECT_EQ(one["seconds"]["all"].size(), runs) << one;
  }
}

TEST(Bench, EveryVariantHasAColumn) {
  const ToolResult done = run_tool(tiny_with({"--against", "variants"}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  for (const char* name : {"cpu/batched ms", "cpu/tall ms", "cpu/blocked ms", "cpu/eigen ms"})
    EXPECT_NE(done.out.find(name), std::string::npos) << name << done.out;
  for (const char* name : {"  eigen ms", "cpu/complex"})
    EXPECT_EQ(done.out.find(name), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("] cpu/tall: at most one block of"), std::string::npos) << done.out;
}

TEST(Bench, ExportsHoldWhatWasPrinted) {
  const TemporaryDirectory directory;
  const std::string json = directory / "b.json", csv = directory / "b.csv",
                    markdown = directory / "b.md";
  const std::vector<std::string> arguments =
      tiny_with({"--shape", "5x9,9x5", "--quiet", "--export-json", json, "--export-csv", csv,
                 "--export-markdown", markdown, "--precision", "double"});
  const ToolResult done = run_tool(arguments);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"b.csv", "b.json", "b.md"}));
  const auto document = nlohmann::json::parse(read_text(json));
  EXPECT_EQ(document["cases"].size(), 3u) << "an option that is repeated adds";
  EXPECT_LT(document["cases"][0]["error_worst"], 1e-12);
  EXPECT_GT(document["cases"][0]["error_mean"], 0);
  const std::string lines = read_text(csv);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_NE(lines.find(",double,reduced,gauss,5,9,4,"), std::string::npos) << lines;
  EXPECT_NE(read_text(markdown).find("| 9x5 | 4 | cpu/"), std::string::npos);

  const ToolResult again = run_tool(arguments);
  EXPECT_EQ(again.exit_code, 5) << "an existing file is kept";
  EXPECT_NE(again.err.find("b.json"), std::string::npos) << again.err;
}

TEST(Bench, JsonOnStandardOutput) {
  const ToolResult done = run_tool(tiny_with({"--json", "--mode", "r", "--against", "none"}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto document = nlohmann::json::parse(done.out);
  EXPECT_EQ(document["mode"], "r");
  EXPECT_EQ(document["cases"][0]["error_worst"], nullptr);
  EXPECT_EQ(document["cases"][0]["baselines"].size(), 0u);
}

/// The cases of a run of `bench --solve --json`.
nlohmann::json solved(std::vector<std::string> more) {
  std::vector<std::string> arguments{"bench", "--solve", "--json", "--quick", "--backend", "cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ToolResult done = run_tool(arguments);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return nlohmann::json::parse(done.out)["cases"];
}

TEST(BenchSolve, EveryRouteOfTheToolSolvesAndChecks) {
  const std::pair<std::vector<std::string>, std::string> routes[] = {
      {{"--shape", "16x4", "--batch", "100"}, "cpu/batched"},
      {{"--shape", "100000x16", "--batch", "2"}, "cpu/tall"},
      {{"--shape", "300x200", "--batch", "2"}, "cpu/"},
      {{"--shape", "5x9", "--batch", "3"}, "cpu/"},
      {{"--shape", "40x3", "--batch", "1000", "--shared"}, "one QR for all"},
      {{"--shape", "40x30", "--batch", "3", "--shared"}, "cpu/"},
  };
  for (const char* precision : {"single", "double"}) {
    for (auto [arguments, variant] : routes) {
      arguments.insert(arguments.end(), {"--precision", precision, "--against", "none"});
      const nlohmann::json cases = solved(arguments);
      ASSERT_EQ(cases.size(), 1u);
      const nlohmann::json& one = cases[0];
      EXPECT_EQ(one["variant"].get<std::string>().find(variant), 0u) << one["variant"];
      EXPECT_GT(one["error_worst"], 0) << one;
      EXPECT_LT(one["error_worst"], precision == std::string("double") ? 1e-14 : 1e-5) << one;
      EXPECT_EQ(one["failed"], 0);
    }
  }
}

TEST(BenchSolve, ARidgeIsThatOfEveryRouteAndOfLapack) {
  const std::vector<std::string> routes[] = {
      {"--shape", "16x4,4x16", "--batch", "100", "--ridge", "0.5"},
      // Rows so large that R has a scale.
      {"--shape", "100000x16", "--batch", "2", "--precision", "double", "--ridge", "1e200"},
      {"--shape", "300x200,30x50", "--batch", "2", "--complex", "--ridge", "2"},
      {"--shape", "40x3", "--batch", "1000", "--shared", "--ridge", "2"},
      {"--shape", "40x3", "--batch", "100", "--shared", "--weights", "--ridge", "2"}};
  for (const std::vector<std::string>& arguments : routes) {
    for (const nlohmann::json& one : solved(arguments)) {
      EXPECT_GT(one["error_worst"], 0) << one;
      EXPECT_LT(one["error_worst"], 1e-5) << one;
      EXPECT_EQ(one["failed"], 0) << one;
      for (const auto& [name, cell] : one["baselines"].items())
        EXPECT_TRUE(cell["speed_up"].is_null() || cell["speed_up"] > 0) << name;
    }
  }
}

TEST(BenchSolve, ADeviceSolvesWhatSolveGivesIt) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--shape", "16x4,4x16"},
        {"--shape", "16x4,4x16", "--ridge", "2"},
        {"--shape", "40x3", "--shared", "--ridge", "2"},
        {"--shape", "40x3", "--shared", "--weights", "--ridge", "2"}}) {
    std::vector<std::string> arguments{"bench",     "--solve", "--json",      "--quick",
                                       "--batch",   "50",      "--precision", "double",
                                       "--against", "none",    "--backend",   "opencl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult done = run_tool(arguments);
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto document = nlohmann::json::parse(done.out);
    EXPECT_EQ(document["ridge"], more.back() == "2" ? 2 : 0);
    EXPECT_EQ(document["notes"].dump().find("left to the CPU"), std::string::npos);
    for (const auto& one : document["cases"]) {
      EXPECT_GT(one["error_worst"], 0) << one;
      EXPECT_LT(one["error_worst"], 1e-14) << one;
      EXPECT_GT(one["seconds"]["median"], 0) << one;
      EXPECT_GT(one["check_seconds"], 0) << "by the device's clock";
    }
  }
}

TEST(BenchSolve, ADeviceLeavesComplexSystemsToTheCpu) {
  for (const char* shared : {"", "--shared"}) {
    std::vector<std::string> arguments{"bench",     "--solve", "--complex", "--json",
                                       "--shape",   "16x4",    "--batch",   "50",
                                       "--against", "none",    "--backend", "opencl"};
    if (*shared != 0) arguments.push_back(shared);
    const ToolResult done = run_tool(arguments);
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto document = nlohmann::json::parse(done.out);
    EXPECT_EQ(document["cases"][0]["seconds"], nullptr);
    EXPECT_EQ(document["notes"][0], "device: solve takes such systems to the CPU: A is complex");
  }
}

TEST(BenchSolve, TheVariantOfADeviceIsThatOfItsRoute) {
  const std::pair<std::vector<std::string>, std::string> routes[] = {
      {{"--shape", "16x4"}, "normal equations"},
      {{"--shape", "4100x3"}, "normal equations"},
      {{"--shape", "140x130"}, "opencl/"},
      {{"--shape", "16x4", "--variant", "opencl/vector"}, "opencl/vector"},
      {{"--shape", "40x3", "--shared"}, "one QR for all"},
  };
  for (const auto& [more, variant] : routes) {
    std::vector<std::string> arguments{"bench",     "--solve", "--json",      "--quick",
                                       "--batch",   "20",      "--precision", "double",
                                       "--against", "none",    "--backend",   "opencl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult done = run_tool(arguments);
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto one = nlohmann::json::parse(done.out)["cases"][0];
    EXPECT_EQ(one["variant"].get<std::string>().find(variant), 0u) << one["variant"] << more[1];
  }
}

TEST(BenchSolve, LapackIsNamedAndTimed) {
  CpuBackend backend(Limits{});
  const BenchSetup setup{.backend = backend, .variant = {}, .limits = {}};
  if (make_lapack_solver(LapackMethod::gels, setup)->text() == "not found")
    GTEST_SKIP() << "no LAPACK";
  for (const char* shared : {"", "--shared"}) {
    std::vector<std::string> arguments{"--shape", "30x5,64x4", "--batch",
                                       "3,500",   "--against", "gels,gelsy,normal-equations"};
    if (*shared != 0) arguments.push_back(shared);
    for (const nlohmann::json& one : solved(arguments)) {
      ASSERT_EQ(one["baselines"].size(), 3u);
      for (const auto& [name, cell] : one["baselines"].items())
        EXPECT_GT(cell["speed_up"], 0) << name;
    }
  }
}

TEST(BenchSolve, ComplexSystemsAreSolvedOnTheCpu) {
  for (const std::string precision : {"single", "double"})
    for (const char* shared : {"", "--shared"}) {
      std::vector<std::string> arguments{"--complex", "--shape",     "16x4,30x20", "--batch",
                                         "100",       "--precision", precision};
      if (*shared != 0) arguments.push_back(shared);
      for (const nlohmann::json& one : solved(arguments)) {
        EXPECT_GT(one["error_worst"], 0) << one;
        EXPECT_LT(one["error_worst"], precision == "double" ? 1e-14 : 1e-5) << one;
        EXPECT_EQ(one["failed"], 0);
        EXPECT_TRUE(one["baselines"]["gels"].contains("speed_up"));
      }
    }
}

TEST(Bench, ACellThatCannotBeMeasuredSaysWhyAndTheRestGoesOn) {
  const ToolResult done = run_tool({"bench", "--shape", "3000x3000,8x8", "--backend", "cpu",
                                    "--memory", "1MiB", "--against", "eigen,lapack,textbook"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("\n3000x3000       1  --   "), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("] cpu: one 3000x3000 matrix of float32 needs "), std::string::npos)
      << done.out;
  EXPECT_NE(done.out.find("] textbook: "), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("\n8x8             1  cpu/"), std::string::npos) << done.out;
}

TEST(Bench, WhatContradictsIsAUsageError) {
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{"bench", "--against", "eigne"}, "did you mean 'eigen'?"},
      {{"bench", "--shape", "8"}, "is not a shape"},
      {{"bench", "--shape", "0x8"}, "nothing to measure"},
      {{"bench", "--shape", "10x8x8"}, "hint: --shape 8x8 --batch 10"},
      {{"bench", "--batch", "8"}, "--batch needs --shape"},
      {{"bench", "--shape", "8x8", "--batch", "0"}, "is not a whole number"},
      {{"bench", "--sweep", "--shape", "8x8"}, "--sweep contradicts --shape"},
      {{"bench", "--gemm", "--sweep"}, "--gemm measures products on an OpenCL device"},
      {{"bench", "--shared"}, "--shared needs --solve"},
      {{"bench", "--ridge", "1"}, "--ridge needs --solve"},
      {{"bench", "--solve", "--ridge", "-1"}, "--ridge"},
      {{"bench", "--solve", "--mode", "r"}, "hint: leave these away"},
      {{"bench", "--arithmetic", "mixed", "--precision", "double"},
       "--arithmetic mixed contradicts --precision double"},
      {{"bench", "--mode", "raw", "--sign", "positive"}, "--sign positive contradicts --mode raw"},
      {{"bench", "--kind", "gaus"}, "did you mean 'gauss'?"},
      {{"bench", "--kind", "band,upper+gaus"}, "did you mean 'gauss'?"},
      {{"bench", "--complex", "--gemm"}, "bench --gemm is for real matrices"},
      {{"bench", "--complex", "--rates"}, "--rates measures all variants of a backend"},
      {{"bench", "--complex", "--against", "textbook"}, "it takes no complex matrices"},
      {{"bench", "--complex", "--against", "gels"}, "it solves least squares"},
      {{"bench", "--seeds", "0"}, "is not a whole number"},
      {{"bench", "--runs", "0"}, "is not a whole number"},
      {{"bench", "--tolerance", "0.1"}, "--tolerance needs --compare"},
      {{"bench", "--portable"}, "need --backend opencl"},
      {{"bench", "--first-run", "--backend", "opencl"}, "--first-run measures one case"},
      {{"bench", "--gemm", "--cold"}, "take no --seeds, --runs, --cold"},
      {{"bench", "--solve", "--kind", "zero"}, "--solve measures solutions"},
      {{"bench", "--against", "eigen,none"}, "none stands alone"},
      {{"bench", "--solve", "--against", "eigen"}, "hint: with --solve: gels"},
      {{"bench", "--against", "gels"}, "--against gels: it solves least squares"},
      {{"bench", "--solve", "--mode", "r"}, "--solve measures solutions"},
      {{"bench", "--solve", "--gemm"}, "--solve measures solutions"},
      {{"bench", "--export-json", "-"}, "cannot be standard output"},
      {{"bench", "--export-json", "x", "--export-csv", "x"}, "cannot both be 'x'"},
      {{"bench", "--shape", "8x8", "--variant", "cpu/eigne"}, "did you mean 'cpu/eigen'?"},
  };
  for (const auto& [arguments, words] : wrong) {
    const ToolResult done = run_tool(arguments);
    EXPECT_EQ(done.exit_code, 2) << words << "\n" << done.err;
    EXPECT_NE(done.err.find(words), std::string::npos) << words << "\n" << done.err;
  }
}

}  // namespace
}  // namespace qrtool::bench_test
