// SPDX-License-Identifier: Apache-2.0
// table_test.cpp: the results of bench as text, Markdown, CSV and JSON.
#include "app/bench/table/table.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace qrtool::table_test {
namespace {

/// Returns a result of two cases. Of the second one only a baseline was measured.
BenchResult example() {
  BenchResult result;
  result.header = {.backend = "opencl",
                   .device = "Pretend, Inc. GPU (driver 1.2)",
                   .seed = 7,
                   .repeats = {},
                   .processor = "Pretend CPU",
                   .threads = 16,
                   .baselines = {{"eigen", "one matrix per thread"}, {"lapack", "not found"}}};
  result.cases = {{64, 64, 15000}, {5000, 5000, 8}};
  BenchRow row;
  row.size = result.cases[0];
  row.variant = "opencl/small";
  row.tool = Timing{.seconds = {0.001, 0.00125, 0.0015}, .check_seconds = 0.0005};
  row.accuracy = {.matrices = 2, .sum = 4e-5, .worst = 3e-5};
  row.accuracy.routes = {
      .first_pass = 14990, .second_pass = 7, .further_passes = 5, .reflectors = 3};
  row.baselines = {Timing{.seconds = {0.5}}, std::nullopt};
  result.add_note(row, "lapack: not found");
  result.rows.push_back(row);
  BenchRow skipped;
  skipped.size = result.cases[1];
  skipped.baselines = {Timing{.seconds = {12.3456}}, std::nullopt};
  result.add_note(skipped, "device: too \"large\", by far");
  result.add_note(skipped, "lapack: not found");
  result.rows.push_back(skipped);
  return result;
}

TEST(BenchTable, Text) {
  const BenchResult result = example();
  EXPECT_EQ(text_head(result) + text_row(result, result.rows[0]) +
                text_row(result, result.rows[1]) + text_notes(result),
            "qrtool     " QRTOOL_VERSION
            R"(, float32, mode reduced, Gaussian matrices, seed 7
device     Pretend, Inc. GPU (driver 1.2); its own clock, data resident, without the check
eigen      one matrix per thread
lapack     not found
baselines  Pretend CPU, 16 threads; wall time less the share of any check
each time  median of 5 after 2 warm-ups; the errors are of a run that the seed chose
error      ||QR - A||, Frobenius norm, of one matrix

case        batch  variant          device ms   check ms     eigen ms  speed-up    lapack ms  speed-up   GFLOP/s  mean error  worst error  notes
64x64      15,000  opencl/small         1.250     0.5000        500.0       400           --        --      8389    2.00e-05     3.00e-05  1
5000x5000       8  --                      --         --        12346        --           --        --        --          --           --  2,1

[1] lapack: not found
[2] device: too "large", by far
)");
}

TEST(BenchTable, OnTheCpuTheToolsColumnIsNamedSo) {
  BenchResult result = example();
  result.header.backend = "cpu";
  const std::string text = text_head(result);
  EXPECT_NE(text.find("   cpu ms  "), std::string::npos) << text;
  EXPECT_EQ(text.find("device"), std::string::npos) << text;
}

TEST(BenchTable, ThreadsHaveAColumnWhereCasesNameThem) {
  BenchResult result = example();
  result.header.backend = "cpu";
  EXPECT_EQ(text_head(result).find("  threads  "), std::string::npos);
  result.cases[0].threads = result.rows[0].size.threads = 3;
  EXPECT_NE(text_head(result).find("  threads  "), std::string::npos);
  EXPECT_NE(text_row(result, result.rows[0]).find(" 3  opencl/small"), std::string::npos);
  EXPECT_NE(text_row(result, result.rows[1]).find(" 16  --"), std::string::npos) << "all";
  EXPECT_NE(to_csv(result).find(",64,64,15000,3,"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(result))["cases"][0]["threads"], 3);
}

TEST(BenchTable, RAloneHasNoError) {
  BenchResult result = example();
  result.header.mode = Mode::r;
  EXPECT_EQ(text_row(result, result.rows[0]).find("e-05"), std::string::npos);
  EXPECT_NE(text_head(result).find("not measured"), std::string::npos);
}

TEST(BenchTable, LeastSquares) {
  BenchResult result = example();
  result.header.task = BenchTask::solve;
  const std::string on_device = text_head(result) + text_row(result, result.rows[0]);
  EXPECT_NE(on_device.find("least squares, one right side for each matrix"), std::string::npos);
  EXPECT_NE(on_device.find("backward error of x"), std::string::npos) << on_device;
  EXPECT_NE(on_device.find("  0.5000  "), std::string::npos) << "the check has its column";
  EXPECT_NE(to_csv(result).find(",single,solve,gauss,64,64,"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(result))["ridge"], 0);
  result.header.ridge = 0.25;
  EXPECT_EQ(nlohmann::json::parse(to_json(result))["ridge"], 0.25);
  EXPECT_NE(text_head(result).find("least squares with ridge 0.25, one right side"),
            std::string::npos)
      << text_head(result);
  result.header.task = BenchTask::solve_shared;
  result.header.backend = "cpu";
  const std::string on_cpu = text_head(result) + text_row(result, result.rows[0]);
  EXPECT_NE(on_cpu.find("one matrix for all right sides"), std::string::npos) << on_cpu;
  EXPECT_NE(on_cpu.find("wall time with the check"), std::string::npos) << on_cpu;
  EXPECT_EQ(on_cpu.find("  0.5000  "), std::string::npos) << "it is in the other time";
  EXPECT_NE(to_csv(result).find(
                ",single,solve-shared,gauss,64,64,15000,16,opencl/small,1.25,1.25,1,1.5,,500,"),
            std::string::npos)
      << to_csv(result);
  const auto json = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(json["mode"], "solve-shared");
  EXPECT_EQ(json["cases"][0]["check_seconds"], nullptr);
}

TEST(BenchTable, Markdown) {
  const std::string text = to_markdown(example());
  const std::string table =
      R"(
| case | batch | variant | device ms | check ms | eigen ms | speed-up | lapack ms | speed-up | GFLOP/s | mean error | worst error | notes |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
| 64x64 | 15,000 | opencl/small | 1.250 | 0.5000 | 500.0 | 400 | -- | -- | 8389 | 2.00e-05 | 3.00e-05 | 1 |
| 5000x5000 | 8 | -- | -- | -- | 12346 | -- | -- | -- | -- | -- | -- | 2,1 |

1. lapack: not found
2. device: too "large", by far
)";
  EXPECT_TRUE(text.ends_with(table)) << text;
  EXPECT_TRUE(text.starts_with("- qrtool: ")) << text;
}

TEST(BenchTable, Csv) {
  EXPECT_EQ(
      to_csv(example()),
      R"csv(backend,device,precision,mode,kind,m,n,batch,threads,variant,ms,ms_worst_batch,ms_fastest,ms_slowest,check_ms,eigen_ms,eigen_speed_up,lapack_ms,lapack_speed_up,gflops,error_mean,error_worst,failed,first_pass,second_pass,further_passes,reflectors,notes
opencl,"Pretend, Inc. GPU (driver 1.2)",single,reduced,gauss,64,64,15000,,opencl/small,1.25,1.25,1,1.5,0.5,500,400,,,8388.61,2e-05,3e-05,0,14990,7,5,3,lapack: not found
opencl,"Pretend, Inc. GPU (driver 1.2)",single,reduced,gauss,5000,5000,8,,,,,,,,12345.6,,,,,,,0,0,0,0,0,"device: too ""large"", by far; lapack: not found"
)csv");
}

TEST(BenchTable, Json) {
  const auto json = nlohmann::json::parse(to_json(example()));
  EXPECT_EQ(json["schema"], "qrtool.bench/1");
  EXPECT_EQ(json["backend"]["device"], "Pretend, Inc. GPU (driver 1.2)");
  EXPECT_EQ(json["cases_wanted"], 2);
  const auto& first = json["cases"][0];
  EXPECT_EQ(
      first["routes"].dump(),
      R"({"first_pass":14990,"further_passes":5,"only":0,"reflectors":3,"second_pass":7,"second_try":0})");
  EXPECT_EQ(first["seconds"]["median"], 0.00125);
  EXPECT_EQ(first["seconds"]["all"].size(), 3u);
  EXPECT_EQ(first["baselines"]["eigen"]["speed_up"], 400.0);
  EXPECT_EQ(first["baselines"]["lapack"]["seconds"], nullptr);
  EXPECT_EQ(json["cases"][1]["variant"], nullptr);
  EXPECT_EQ(json["cases"][1]["notes"], (std::vector<int>{2, 1}));
  EXPECT_EQ(json["exit"], 0);
}

TEST(BenchTable, BatchesOfSeveralSeedsHaveAMedianAndAWorstOne) {
  BenchResult result = example();
  Timing& tool = *result.rows[0].tool;
  tool = {.seconds = {0.001, 0.001}, .batches = {{.seed = 7, .median = 0.001, .runs = 2}}};
  tool.include({.seconds = {0.009}, .batches = {{.seed = 8, .median = 0.009, .runs = 1}}});
  tool.include({.seconds = {0.002}, .batches = {{.seed = 9, .median = 0.002, .runs = 1}}});
  result.header.seeds = 3;
  EXPECT_NE(text_head(result).find("seeds 7 to 9"), std::string::npos) << text_head(result);
  EXPECT_NE(text_head(result).find("device ms   worst ms"), std::string::npos);
  EXPECT_NE(text_row(result, result.rows[0]).find("2.000      9.000"), std::string::npos)
      << text_row(result, result.rows[0]);
  EXPECT_NE(to_csv(result).find(",opencl/small,2,9,1,9,"), std::string::npos) << to_csv(result);
  const auto json = nlohmann::json::parse(to_json(result))["cases"][0]["seconds"];
  EXPECT_EQ(json["median"], 0.002);
  EXPECT_EQ(json["worst"], 0.009);
  EXPECT_EQ(json["batches"][1]["seed"], 8);
  EXPECT_EQ(json["all"].size(), 4u);
}

TEST(BenchTable, KindsHaveAColumnWhereThereAreSeveral) {
  BenchResult result = example();
  EXPECT_EQ(text_head(result).find("  kind  "), std::string::npos);
  result.header.kinds = {"gauss", "band+upper"};
  result.rows[0].size.kind = "band+upper";
  EXPECT_NE(text_head(result).find("gauss, band+upper matrices"), std::string::npos);
  EXPECT_NE(text_row(result, result.rows[0]).find("15,000  band+upper"), std::string::npos)
      << text_row(result, result.rows[0]);
  EXPECT_NE(to_csv(result).find(",reduced,band+upper,64,64,"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(result))["cases"][0]["kind"], "band+upper");
}

TEST(BenchTable, TheStateOfTheMachineIsInJson) {
  BenchResult result = example();
  result.before.gpus = {{.name = "Pretend GPU", .clock_mhz = "1980", .power_state = "P0"}};
  result.after.load = 0.5;
  const auto state = nlohmann::json::parse(to_json(result))["state"];
  EXPECT_EQ(state["before"]["gpus"][0]["clock_mhz"], "1980");
  EXPECT_EQ(state["before"]["gpus"][0]["power_watts"], nullptr) << "not said";
  EXPECT_EQ(state["before"]["load"], nullptr);
  EXPECT_EQ(state["after"]["load"], 0.5);
}

TEST(MachineState, SaysWhatMayDisturb) {
  MachineState before, after;
  EXPECT_EQ(disturbance(before, after), "");
  before.gpus = {{.name = "Pretend GPU", .use_percent = "40"}};
  EXPECT_EQ(disturbance(before, after),
            "before this run began, Pretend GPU was in use for 40 % of the time");
  after.gpu_processes = {4711};
  EXPECT_EQ(disturbance(before, after), "another process computes on a GPU: 4711");
}

TEST(BenchTable, FiguresHaveFourDigitsAndNoExponent) {
  EXPECT_EQ(format_figure(0.0001234), "0.0001");
  EXPECT_EQ(format_figure(0.01234), "0.0123");
  EXPECT_EQ(format_figure(0.1234), "0.1234");
  EXPECT_EQ(format_figure(1.2345), "1.234");
  EXPECT_EQ(format_figure(12.345), "12.35");
  EXPECT_EQ(format_figure(1234.5), "1234");
  EXPECT_EQ(format_figure(12345678), "12345678");
  EXPECT_EQ(format_figure(0.4567, 3), "0.457");
  EXPECT_EQ(format_figure(0), "0");
}

}  // namespace
}  // namespace qrtool::table_test
