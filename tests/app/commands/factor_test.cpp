// SPDX-License-Identifier: Apache-2.0
// factor_test.cpp: runs `qrtool factor` as a user does and tests what it promises of its results.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/matrix/matrices.hpp"
#include "io/read/reader.hpp"
#include "tests/app/commands/factor_fixture.hpp"

namespace qrtool::test::factor_test {
namespace {

TEST_F(Factor, RAloneOfAWideMatrixTakesLittleMemory) {
  const std::string a = make<float>("a.h5", 1, 4, 9000);  // A'A has 81 million entries
  const std::string q = factor(
      a, "q.h5",
      {"--mode", "r", "--backend", "cpu", "--memory", "16MiB", "--threads", "1", "--order", "row"});
  EXPECT_EQ(run_tool({"verify", a, q, "--memory", "16MiB"}).exit_code, 0);
}

TEST_F(Factor, SummaryNamesWhatWasDone) {
  const std::string a = make<float>("a.h5", 1200, 6, 4);
  const ToolResult result = run_tool({"factor", a, dir_ / "q.h5", "--threads", "2"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const testing::Matcher<std::string> expected = testing::MatchesRegex(
      R"(factored 1,200 of 6x4 \(float32, reduced, sign positive\) on cpu \(cpu/\w+, 2 threads\))"
      "\n"
      R"(worst residual \S+ \(\S+ of its bar, matrix [0-9]+\), orthogonality \S+ \(\S+, matrix [0-9]+\), lower 0)"
      "\n"
      R"(all 1,200 pass; wrote \S*/q\.h5 \(/Q 1200x6x4, /R 1200x4x4, /report\))"
      "\n");
  EXPECT_TRUE(expected.Matches(result.out)) << result.out;
}

TEST_F(Factor, CountsTheRoutes) {
  Batch<float> a = make_matrices<float>("gauss", 3, 3000, 4);
  for (index_t i = 0; i < 3000; ++i) a.view()[1](i, 3) = a.view()[1](i, 0);
  a.view()[2](7, 1) = std::numeric_limits<float>::quiet_NaN();
  write_matrices<float>(dir_ / "a.h5", {3}, a.view());
  const Strings arguments{"factor", dir_ / "a.h5", dir_ / "q.h5", "--force",   "--mode",
                          "r",      "--variant",   "cpu/tall",    "--threads", "1"};
  const ToolResult verbose = run_tool(arguments + Strings{"--verbose"});
  EXPECT_NE(verbose.out.find("\nroutes: 1 by A'A in one pass, 0 in two passes, 0 in further "
                             "passes, 1 by reflectors, 0 in "
                             "a second try\n"),
            std::string::npos)
      << verbose.out;
  const std::string usual = run_tool(arguments).out;
  EXPECT_EQ(usual.find("routes"), std::string::npos);
  EXPECT_NE(usual.find("on cpu (cpu/tall, 1 of 2 by reflectors, 1 thread)"), std::string::npos)
      << usual;
  const auto json = nlohmann::json::parse(run_tool(arguments + Strings{"--json"}).out);
  EXPECT_EQ(
      json["routes"].dump(),
      R"({"first_pass":1,"further_passes":0,"only":0,"reflectors":1,"second_pass":0,"second_try":0})");
  EXPECT_EQ(json["backend"]["way"], "1 of 2 by reflectors");
}

TEST_F(Factor, QuietPrintsNothing) {
  const ToolResult result =
      run_tool({"factor", make<float>("a.h5", 3, 4, 4), dir_ / "q.h5", "--quiet"});
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_EQ(result.exit_code, 0);
}

TEST_F(Factor, JsonIsOneDocument) {
  const std::string a = make<double>("a.h5", 7, 6, 4);
  const ToolResult result = run_tool({"factor", a, dir_ / "q.h5", "--json", "--mode", "complete"});
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], "qrtool.factor/1");
  EXPECT_EQ(json["input"]["shape"], (std::vector<int>{7, 6, 4}));
  EXPECT_EQ(json["output"]["datasets"][0]["shape"], (std::vector<int>{7, 6, 6}));
  EXPECT_EQ(json["output"]["mode"], "complete");
  EXPECT_EQ(json["backend"]["name"], "cpu");
  EXPECT_EQ(json["check"]["passed"], 7);
  EXPECT_LE(json["check"]["worst"]["residual"]["ratio"], 1.0);
  double one_after_another = 0;
  for (const char* row : {"start", "sync"}) {
    EXPECT_GT(json["seconds"][row], 0.0) << row;
    one_after_another += json["seconds"][row].get<double>();
  }
  EXPECT_GT(json["seconds"]["total"], one_after_another);
  EXPECT_EQ(json["exit"], 0);
}

TEST_F(Factor, JsonHasNullForNaN) {
  Batch<float> a = make_matrices<float>("gauss", 1, 3, 3);
  a.view()[0](1, 1) = std::numeric_limits<float>::infinity();
  write_matrices<float>(dir_ / "a.h5", {1}, a.view());
  const ToolResult result =
      run_tool({"factor", dir_ / "a.h5", dir_ / "q.h5", "--json", "--report", dir_ / "r.json"});
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_TRUE(json["check"]["worst"]["residual"].is_null());
  EXPECT_EQ(json["check"]["status"]["non_finite"], 1);
  EXPECT_EQ(json["exit"], 1);
  const auto report = nlohmann::json::parse(read_text(dir_ / "r.json"));
  EXPECT_TRUE(report["matrices"][0]["residual"].is_null());
}

TEST_F(Factor, ShapesOfEveryMode) {
  for (const auto& [m, n] : {std::pair<index_t, index_t>{7, 4}, {4, 7}, {5, 5}, {1, 1}, {1, 6}}) {
    const index_t k = std::min(m, n);
    const std::string a = make<float>("a.h5", 2, m, n);
    const auto shape = [&](const std::string& file, const char* dataset) {
      const Source source = read_dataset(file, dataset).source;
      return std::pair(source.m, source.n);
    };
    const std::string reduced = factor(a, "reduced.h5", {"--order", "row"}),
                      r = factor(a, "r.h5", {"--order", "row", "--mode", "r"}),
                      complete = factor(a, "complete.h5", {"--order", "row", "--mode", "complete"}),
                      raw = factor(a, "raw.h5", {"--order", "row", "--mode", "raw"});
    EXPECT_EQ(shape(reduced, "/Q"), std::pair(m, k));
    EXPECT_EQ(shape(reduced, "/R"), std::pair(k, n));
    EXPECT_EQ(shape(complete, "/Q"), std::pair(m, m));
    EXPECT_EQ(shape(complete, "/R"), std::pair(m, n));
    EXPECT_EQ(shape(r, "/R"), std::pair(k, n));
    EXPECT_EQ(shape(raw, "/V"), std::pair(m, n));
    EXPECT_EQ(shape(raw, "/tau"), std::pair(index_t{2}, k)) << "2 matrices, k each";
    EXPECT_TRUE(same_bits(read_dataset(reduced, "/R"), read_dataset(r, "/R")))
        << "R does not depend on whether Q was asked for";
    for (const std::string& file : {reduced, r, complete, raw})
      EXPECT_EQ(run_tool({"verify", a, file}).exit_code, 0) << file;
  }
}

TEST_F(Factor, EmptyBatchIsSaid) {
  const std::string a = make<float>("a.h5", 0, 4, 4);
  const ToolResult result = run_tool({"factor", a, dir_ / "q.h5"});
  EXPECT_EQ(result.err, "qrtool: " + a + ": 0 matrices\n");
  EXPECT_EQ(result.exit_code, 0);
}

/// The output records the bars of mixed precision, and verify uses them.
TEST_F(Factor, MixedPrecisionIsRecorded) {
  const std::string a = make<float>("a.h5", 3, 40, 40);
  const ToolResult done = run_tool({"factor", a, dir_ / "q.h5", "--precision", "mixed", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["unit_roundoff"], 0x1p-10);
  EXPECT_EQ(json["output"]["precision"], "mixed");
  EXPECT_EQ(json["backend"]["arithmetic"], "float32");
  const ToolResult verified = run_tool({"verify", a, dir_ / "q.h5"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("u = 2^-10, mixed precision"), std::string::npos) << verified.out;
  const ToolResult shown = run_tool({"factor", a, dir_ / "q.h5", "--precision", "mixed", "-f"});
  EXPECT_NE(shown.out.find("the published m 2^-23 = 4.8e-06: residual holds, orthogonality holds"),
            std::string::npos)
      << shown.out;
}

TEST_F(Factor, CsvInCsvOut) {
  write_text(dir_ / "a.csv", "1,2\n3,4\n5,6\n\n7,8\n9,10\n11,13\n");
  const ToolResult result = run_tool({"factor", "a.csv", "out.csv"}, {.directory = dir_.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(dir_.names(), (Strings{"a.csv", "out.Q.csv", "out.R.csv", "out.report.csv"}));
  EXPECT_NE(result.out.find("wrote out.Q.csv, out.R.csv, out.report.csv"), std::string::npos);
  EXPECT_EQ(run_tool({"verify", "a.csv", "out.csv"}, {.directory = dir_.path()}).exit_code, 0);
}

TEST_F(Factor, ExplainPrintsThePlanAndTheForcedVariantRuns) {
  const std::string a = make<float>("a.h5", 5, 8, 3);
  const ToolResult result =
      run_tool({"factor", a, dir_ / "q.h5", "--explain", "--variant", "cpu/eigen", "--json"});
  EXPECT_NE(result.err.find("variant   cpu/eigen (asked for)"), std::string::npos) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["backend"]["variant"], "cpu/eigen");
  const ToolResult unknown = run_tool({"factor", a, dir_ / "p.h5", "--variant", "cpu/eigne"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'cpu/eigen'?"), std::string::npos) << unknown.err;
}

TEST_F(Factor, VerboseNamesTheConversion) {
  write_text(dir_ / "a.csv", "1,2\n3,4\n");
  const ToolResult result =
      run_tool({"factor", dir_ / "a.csv", dir_ / "q.h5", "-v", "--precision", "single"});
  EXPECT_NE(result.err.find("factored in float32"), std::string::npos) << result.err;
}

TEST_F(Factor, TheSameBitsWhateverMemoryAndThreads) {
  write_matrices<float>(dir_ / "a.h5", {30, 100},
                        make_matrices<float>("mixed", 3000, 24, 16).view());
  const std::string a = dir_ / "a.h5", expected = factor(a, "expected.h5");
  const char* datasets[] = {"/Q",
                            "/R",
                            "/report/residual",
                            "/report/orthogonality",
                            "/report/lower",
                            "/report/diagonal_ratio",
                            "/report/scale"};
  for (const Strings& more : std::vector<Strings>{{"--memory", "5000KiB"},
                                                  {"--memory", "6MiB", "--threads", "1"},
                                                  {"--memory", "10MiB", "--threads", "5"}}) {
    const std::string q = factor(a, "q.h5", more);
    for (const char* dataset : datasets)
      EXPECT_TRUE(same_bits(read_dataset(expected, dataset), read_dataset(q, dataset)))
          << dataset << testing::PrintToString(more);
    // The status, whose values are names, with all the rest.
    EXPECT_TRUE(read_text(q) == read_text(expected)) << testing::PrintToString(more);
  }
}

TEST_F(Factor, TheSameFileWhateverThreadsAndTime) {
  const std::string a = make<float>("a.h5", 3000, 24, 16);
  const std::string expected = read_text(factor(a, "q.h5"));
  EXPECT_TRUE(read_text(factor(a, "q.h5")) == expected);
  EXPECT_TRUE(read_text(factor(a, "q.h5", {"--threads", "1"})) == expected);
  EXPECT_TRUE(read_text(factor(a, "q.h5", {"--threads", "7"})) == expected);
}

TEST_F(Factor, ABatchIsItsMatricesOneByOne) {
  const index_t count = 6;
  for (const char* kind : {"gauss", "mixed", "rank-deficient"}) {
    const Batch<float> a = make_matrices<float>(kind, count, 17, 9);
    write_matrices<float>(dir_ / "a.h5", {count}, a.view());
    const std::string all = factor(dir_ / "a.h5", "all.h5");
    const Stored Q = read_dataset(all, "/Q"), R = read_dataset(all, "/R");
    for (index_t b = 0; b < count; ++b) {
      write_matrices<float>(dir_ / "one.h5", {}, a.view().slice(b, 1));
      const std::string one = factor(dir_ / "one.h5", "q.h5");
      EXPECT_TRUE(same_bits(Q, b, read_dataset(one, "/Q"), 0, 1)) << kind << b;
      EXPECT_TRUE(same_bits(R, b, read_dataset(one, "/R"), 0, 1)) << kind << b;
    }
  }
}

TEST_F(Factor, ScalingByAPowerOfTwoScalesROnly) {
  const index_t count = 4;
  const Batch<float> a = make_matrices<float>("gauss", count, 20, 7);
  write_matrices<float>(dir_ / "a.h5", {count}, a.view());
  const std::string plain = factor(dir_ / "a.h5", "q.h5");
  const Stored Q = read_dataset(plain, "/Q"), R = read_dataset(plain, "/R");
  for (const int power : {-90, -3, 1, 60, 110}) {
    const Batch<float> scaled(count, 20, 7);
    for (index_t i = 0; i < count * 20 * 7; ++i)
      scaled.view().data[i] = std::ldexp(a.view().data[i], power);
    write_matrices<float>(dir_ / "s.h5", {count}, scaled.view());
    const std::string s = factor(dir_ / "s.h5", "sq.h5");
    EXPECT_TRUE(same_bits(Q, read_dataset(s, "/Q"))) << power;
    const Stored scaled_r = read_dataset(s, "/R");
    for (index_t i = 0; i < count * 7 * 7; ++i)
      ASSERT_EQ(scaled_r.view().data[i], std::ldexp(R.view().data[i], power)) << power;
  }
}

TEST_F(Factor, PositionOfABadMatrixHasAllLeadingDimensions) {
  const Batch<float> a = make_matrices<float>("gauss", 6, 3, 3);
  a.view()[5](0, 0) = std::numeric_limits<float>::quiet_NaN();
  write_matrices<float>(dir_ / "a.h5", {2, 3}, a.view());
  const ToolResult result = run_tool({"factor", dir_ / "a.h5", dir_ / "q.h5"});
  EXPECT_NE(result.err.find("1 of 6 matrices contains NaN or Inf (first: [1,2])"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("5 of 6 pass, 1 not finite"), std::string::npos) << result.out;
}

TEST_F(Factor, AnRThatOverflowsIsNamedWithTheRemedy) {
  const Batch<float> a(1, 4, 1);
  for (index_t i = 0; i < 4; ++i) a.view()[0](i, 0) = 3e38f;
  write_matrices<float>(dir_ / "a.h5", {}, a.view());
  const ToolResult result = run_tool({"factor", dir_ / "a.h5", dir_ / "q.h5", "-q"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "qrtool: " + (dir_ / "a.h5") +
                            ": 1 of 1 matrix has an R that exceeds the float32 range (first: 0)\n"
                            "hint: use --precision double\n");
  EXPECT_EQ(
      run_tool({"factor", dir_ / "a.h5", dir_ / "q.h5", "-f", "--precision", "double"}).exit_code,
      0);
}

TEST_F(Factor, EveryKindOfMatrixPasses) {
  for (const MatrixKind& kind : matrix_kinds()) {
    const std::string name(kind.name);
    for (const auto& [m, n] : {std::pair<index_t, index_t>{13, 13}, {40, 6}, {6, 40}}) {
      make<float>("a.h5", 3, m, n, name.c_str());
      const ToolResult factored = run_tool({"factor", dir_ / "a.h5", dir_ / "q.h5", "-fq"});
      EXPECT_EQ(factored.exit_code, 0) << name << factored.err;
      const ToolResult verified = run_tool({"verify", dir_ / "a.h5", dir_ / "q.h5", "-q"});
      EXPECT_EQ(verified.exit_code, 0) << name << verified.err;
    }
  }
}

TEST_F(Factor, MemoryThatIsTooSmallIsRefusedWithTheNeed) {
  const std::string a = make<double>("a.h5", 2, 300, 300);
  const ToolResult result = run_tool({"factor", a, dir_ / "q.h5", "--memory", "1MiB"});
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_NE(result.err.find("the limit is 1.0 MiB"), std::string::npos) << result.err;
  EXPECT_EQ(dir_.names(), Strings{"a.h5"});
}

TEST_F(Factor, NothingIsOverwrittenUnasked) {
  const std::string a = make<float>("a.h5", 2, 4, 4);
  write_text(dir_ / "q.h5", "precious");
  const ToolResult result = run_tool({"factor", a, dir_ / "q.h5"});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(result.err,
            "qrtool: '" + (dir_ / "q.h5") + "' exists\nhint: use --force to replace it\n");
  EXPECT_EQ(read_text(dir_ / "q.h5"), "precious");
  for (const std::string& output : {a, dir_ / "./a.h5"}) {
    const ToolResult same = run_tool({"factor", a, output, "--force"});
    EXPECT_EQ(same.exit_code, 2) << same.err;
  }
  EXPECT_EQ(run_tool({"verify", a, a}).exit_code, 3);
}

TEST_F(Factor, ReportMustNotReplaceTheInput) {
  write_text(dir_ / "a.csv", "1,2\n3,4\n");
  const ToolResult result =
      run_tool({"factor", dir_ / "a.csv", dir_ / "q.h5", "-f", "--report", dir_ / "a.csv"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(read_text(dir_ / "a.csv"), "1,2\n3,4\n");
}

TEST_F(Factor, NoPrivatePathInTheOutput) {
  const std::string a = make<float>("a.h5", 2, 4, 4);
  EXPECT_EQ(read_text(factor(a, "q.h5")).find(dir_.path()), std::string::npos);
}

}  // namespace
}  // namespace qrtool::test::factor_test
