// SPDX-License-Identifier: Apache-2.0
// factor_check_test.cpp: `qrtool factor` with --check probe and --check none.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/app/commands/factor_fixture.hpp"

namespace qrtool::test::factor_check_test {
namespace {

TEST_F(Factor, ProbeStoresEstimatesOfLargeMatrices) {
  const std::string a = make<double>("a.h5", 2, 200, 200);
  const std::string full = factor(a, "full.h5"),
                    probe = factor(a, "probe.h5", {"--check", "probe"});
  EXPECT_TRUE(same_bits(read_dataset(full, "/Q"), read_dataset(probe, "/Q")));
  EXPECT_EQ(read_attribute(full, "check"), "full");
  EXPECT_EQ(read_attribute(probe, "check"), "probe");
  for (const char* name : {"residual", "orthogonality"}) {
    const std::vector<double> measured = read_report(full, name), found = read_report(probe, name);
    for (const std::size_t b : {0U, 1U}) {
      EXPECT_NE(found[b], measured[b]) << name;
      EXPECT_NEAR(found[b], measured[b], 0.3 * measured[b]) << name;
    }
  }
  EXPECT_EQ(read_report(probe, "status"), (std::vector<double>{0, 0}));
  const ToolResult said = run_tool({"factor", a, dir_ / "q.h5", "--check", "probe"});
  EXPECT_NE(
      said.out.find("\nthese errors are estimates, except those of matrices close to a bar\n"),
      std::string::npos)
      << said.out;
}

TEST_F(Factor, ProbeEstimatesWhateverTheVariant) {
  const std::string a = make<double>("a.h5", 1, 2500, 200);
  for (const char* variant : {"cpu/eigen", "cpu/blocked", "cpu/tall"}) {
    const Strings by{"--variant", variant};
    const std::string full = factor(a, "full.h5", by),
                      probe = factor(a, "probe.h5", by + Strings{"--check", "probe"});
    EXPECT_EQ(read_attribute(probe, "check"), "probe") << variant;
    const double measured = read_report(full, "orthogonality")[0];
    const double found = read_report(probe, "orthogonality")[0];
    EXPECT_NE(found, measured) << variant;
    EXPECT_NEAR(found, measured, 0.2 * measured) << variant;
  }
}

TEST_F(Factor, ProbeEstimatesFromReflectors) {
  const std::string a = make<double>("a.h5", 1, 300, 200);
  const Strings raw{"--mode", "raw"};
  const std::string full = factor(a, "full.h5", raw),
                    probe = factor(a, "probe.h5", raw + Strings{"--check", "probe"});
  EXPECT_EQ(read_attribute(probe, "check"), "probe");
  for (const char* name : {"residual", "orthogonality"}) {
    const double measured = read_report(full, name)[0], found = read_report(probe, name)[0];
    EXPECT_NE(found, measured) << name;
    EXPECT_NEAR(found, measured, 0.3 * measured) << name;
  }
  const auto verified = [&](const Strings& more) {
    return nlohmann::json::parse(
        run_tool(Strings{"verify", a, probe, "--json", "--all"} + more).out);
  };
  const auto by_probe = verified({"--check", "probe"});
  EXPECT_EQ(by_probe["check"]["kind"], "probe");
  EXPECT_NE(by_probe["all_matrices"], verified({})["all_matrices"]);
}

TEST_F(Factor, ProbeEstimatesByRowsWhateverTheMemory) {
  const std::string a = make<float>("a.h5", 1, 30000, 192);
  const auto with = [&](const std::string& memory, const std::string& check) {
    return factor(a, check + memory + ".h5", {"--check", check, "--memory", memory});
  };
  const std::string full = with("48MiB", "full"), probe = with("48MiB", "probe"),
                    more = with("64MiB", "probe");
  EXPECT_TRUE(same_bits(read_dataset(full, "/Q"), read_dataset(probe, "/Q")));
  EXPECT_EQ(read_attribute(probe, "check"), "probe");
  for (const char* name : {"residual", "orthogonality"}) {
    const double measured = read_report(full, name)[0], found = read_report(probe, name)[0];
    EXPECT_NE(found, measured) << name;
    EXPECT_NEAR(found, measured, 0.2 * measured) << name;
    EXPECT_EQ(found, read_report(more, name)[0]) << name;
  }
}

TEST_F(Factor, ProbeMeasuresWhereThatIsAsFast) {
  for (const auto& [m, n, more] :
       {std::tuple<index_t, index_t, Strings>{12, 8, {}}, {100000, 8, {"--memory", "7MiB"}}}) {
    const std::string a = make<double>("a.h5", 1, m, n);
    const std::string full = factor(a, "full.h5", more);
    const std::string probe = factor(a, "probe.h5", more + Strings{"--check", "probe"});
    EXPECT_EQ(read_attribute(probe, "check"), "full");
    EXPECT_EQ(read_report(full, "residual"), read_report(probe, "residual"));
    EXPECT_EQ(read_report(full, "orthogonality"), read_report(probe, "orthogonality"));
  }
}

// `--check none` must skip the check on every path: whole matrices with each variant, and row by
// row, with Q and for R alone.
TEST_F(Factor, NoneLeavesTheCheckOut) {
  for (const auto& [count, m, n, more] :
       {std::tuple<index_t, index_t, index_t, Strings>{20, 12, 8, {}},
        {1, 200, 200, {}},
        {2, 12, 8, {"--variant", "cpu/eigen"}},
        {20, 12, 8, {"--mode", "raw"}},
        {1, 100000, 8, {"--variant", "cpu/tall"}},
        {1, 100000, 8, {"--memory", "7MiB"}},
        {1, 100000, 8, {"--memory", "7MiB", "--mode", "r"}}}) {
    const std::string a = make<double>("a.h5", count, m, n);
    const Strings none = more + Strings{"--check", "none"};
    const std::string full = factor(a, "full.h5", more), unchecked = factor(a, "none.h5", none);
    const char* factors = more.size() > 1 && more.back() == "raw" ? "/V" : "/R";
    EXPECT_TRUE(same_bits(read_dataset(full, factors), read_dataset(unchecked, factors)));
    EXPECT_EQ(read_attribute(unchecked, "check"), "none");
    for (const double status : read_report(unchecked, "status")) EXPECT_EQ(status, 4);
    for (const double error : read_report(unchecked, "residual")) EXPECT_TRUE(std::isnan(error));
    EXPECT_EQ(read_report(unchecked, "scale"), read_report(full, "scale"));
    const ToolResult said = run_tool(Strings{"factor", a, dir_ / "q.h5", "-f"} + none);
    EXPECT_EQ(said.out.find("worst"), std::string::npos);
    EXPECT_NE(said.out.find(count == 1 ? "\nthe matrix is unchecked; wrote" : " unchecked; wrote"),
              std::string::npos)
        << said.out;
    const auto json = nlohmann::json::parse(
        run_tool(Strings{"factor", a, dir_ / "q.h5", "-f", "--json"} + none).out);
    EXPECT_EQ(json["check"]["kind"], "none");
    EXPECT_EQ(json["check"]["status"]["unchecked"], count);
    EXPECT_EQ(json["exit"], 0);
    EXPECT_EQ(run_tool({"verify", a, unchecked}).exit_code, 0);
  }
}

TEST_F(Factor, NoneStillNamesABadMatrix) {
  Batch<float> a = make_matrices<float>("gauss", 3, 6, 4);
  a.view()[1](2, 2) = std::numeric_limits<float>::quiet_NaN();
  write_matrices<float>(dir_ / "a.h5", {3}, a.view());
  const ToolResult result = run_tool({"factor", dir_ / "a.h5", dir_ / "q.h5", "--check", "none"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(read_report(dir_ / "q.h5", "status"), (std::vector<double>{4, 2, 4}));
}

}  // namespace
}  // namespace qrtool::test::factor_check_test
