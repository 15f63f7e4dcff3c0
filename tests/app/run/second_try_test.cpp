// SPDX-License-Identifier: Apache-2.0
// second_try_test.cpp: whole runs whose first try is spoiled on purpose: in memory and by rows, on
// the CPU and on a device, by one rank and by several, to HDF5 and to CSV.
#include "core/second_try.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/ranks/factor_on_ranks.hpp"
#include "app/run/opencl.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "io/writer.hpp"
#include "tests/support/local_ranks.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/spoiled_backend.hpp"

namespace qrtool::test {
namespace {

/// The input as the first pass over the rows sees it: with another value in the first entry of
/// marked matrices, so that the R of this pass is wrong.
class SpoiledReader final : public Reader {
 public:
  explicit SpoiledReader(std::unique_ptr<Reader> input) : input_(std::move(input)) {
    source_ = input_->source();
  }

  void read(index_t first, BatchView<float> out) override { input_->read(first, out); }
  void read(index_t first, BatchView<double> out) override { input_->read(first, out); }
  void read_rows(index_t matrix, index_t row, MatrixView<float> out) override {
    read_and_spoil(matrix, row, out);
  }
  void read_rows(index_t matrix, index_t row, MatrixView<double> out) override {
    read_and_spoil(matrix, row, out);
  }
  index_t piece_end(index_t matrix, index_t row) const override {
    return input_->piece_end(matrix, row);
  }

 private:
  template <class T>
  void read_and_spoil(index_t matrix, index_t row, MatrixView<T> out) {
    input_->read_rows(matrix, row, out);
    if (row != 0 || out(0, 0) != T(spoiled_mark) || matrix == last_spoiled_) return;
    last_spoiled_ = matrix;
    for (index_t i = 0; i < out.rows; ++i) out(i, 0) *= T(1.5);
  }

  std::unique_ptr<Reader> input_;
  index_t last_spoiled_ = -1;
};

enum class Spoil { in_report, silently, reader };

struct SpoiledRun {
  std::string name;
  index_t count, m, n;  // the last matrix is marked; of three or more the first holds NaN
  int ranks = 1;
  Spoil spoil = Spoil::in_report;
  bool on_device = false;
  std::size_t host_bytes = std::size_t{1} << 30;
  std::string output = "q.h5";
  Mode mode = Mode::reduced;
  std::optional<Sign> sign = {};
  Order order = Order::row;
  PrecisionWord precision = {};
  std::string variant = {};
  float second_error = 0;  // of the second try
  bool marks_first = false;

  friend std::ostream& operator<<(std::ostream& out, const SpoiledRun& run) {
    return out << run.name;
  }
};

/// Writes the matrices of a run.
void write_input(const std::string& path, const SpoiledRun& run) {
  Batch<float> a = make_matrices<float>("gauss", run.count, run.m, run.n);
  a.view()[run.marks_first ? 0 : run.count - 1](0, 0) = spoiled_mark;
  if (run.count > 2) a.view()[0](1, 1) = std::numeric_limits<float>::quiet_NaN();
  OutputSpec spec;
  spec.path = path;
  spec.leading = {run.count};
  spec.order = run.order;
  spec.datasets = {{"A", ElementType::float32, run.m, run.n}};
  spec.attributes = {{"order", std::string(name_of(run.order))}};
  const auto writer = create_output(spec);
  writer->write("A", 0, BatchView<const float>(a.view()));
  writer->commit();
}

std::unique_ptr<Backend> make_backend(const SpoiledRun& run) {
  Limits limits;
  limits.host_bytes = run.host_bytes;
  limits.threads = 2;
  limits.ranks = run.ranks;
  if (!run.on_device) return std::make_unique<CpuBackend>(limits);
  return make_opencl_backend(choose_opencl_devices("").front(), limits);
}

FactorOptions options_of(const SpoiledRun& run, const TemporaryDirectory& dir) {
  FactorOptions o;
  o.input = dir / "a.h5";
  o.output = dir / run.output;
  o.report = dir / "report.csv";
  o.mode = run.mode;
  o.sign = run.sign;
  o.order = run.order;
  o.precision = run.precision;
  o.backend.variant = run.variant;
  o.quiet = o.force = true;
  return o;
}

/// What rank 0 says of a run in which the first try of the last matrix is spoiled.
FactorResult factor_spoiled(const SpoiledRun& run, const FactorOptions& o, const Source& source) {
  std::optional<FactorResult> result;
  run_ranks(run.ranks, [&](Comm& comm) {
    const Stopwatch watch;
    const std::unique_ptr<Backend> backend = make_backend(run);
    const bool spoils = run.spoil != Spoil::reader;
    SpoiledBackend spoiled(*backend, run.spoil == Spoil::in_report, spoils ? 0.01F : 0,
                           run.second_error);
    std::unique_ptr<Reader> input = open_input_of(o, backend->limits());
    if (!spoils) input = std::make_unique<SpoiledReader>(std::move(input));
    FactorResult own = factor_together(FactorRun(o, *input, spoiled, watch), comm);
    if (!comm.is_root()) return;
    // The result refers to the source of the input, which ends here.
    result.emplace(FactorResult{.source = source,
                                .plan = own.plan,
                                .backend = own.backend,
                                .device = own.device,
                                .files = own.files,
                                .datasets = own.datasets,
                                .verdict = own.verdict,
                                .stages = own.stages,
                                .chunks = own.chunks});
  });
  return *result;
}

/// The fields status and tries of every line of a report in CSV.
std::vector<std::pair<int, int>> status_and_tries(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  std::vector<std::pair<int, int>> found;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream row(line);
    for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
    found.emplace_back(std::stoi(fields.at(5)), std::stoi(fields.at(7)));
  }
  return found;
}

class SecondTryRuns : public testing::TestWithParam<SpoiledRun> {};

TEST_P(SecondTryRuns, EndWithEveryMatrixWithinItsBar) {
  const SpoiledRun& run = GetParam();
  if (run.on_device && opencl_devices().empty()) GTEST_SKIP() << "no OpenCL device";
  const TemporaryDirectory dir;
  write_input(dir / "a.h5", run);
  const FactorOptions o = options_of(run, dir);
  const std::unique_ptr<Reader> input = open_input_of(o, {});
  const FactorResult result = factor_spoiled(run, o, input->source());

  std::vector<std::pair<int, int>> expected(static_cast<std::size_t>(run.count), {0, 1});
  if (run.count > 2) expected.front() = {2, 1};
  (run.marks_first ? expected.front() : expected.back()) = {0, 2};
  EXPECT_EQ(status_and_tries(read_text(dir / "report.csv")), expected);
  EXPECT_EQ(result.verdict.routes().second_try, 1);
  EXPECT_EQ(result.verdict.failed(), run.count > 2 ? 1 : 0);
  EXPECT_NE(summary(result, false)
                .find("\n1 matrix was above its bar at first, and factored again by reflectors\n"),
            std::string::npos)
      << summary(result, false);
  if (run.ranks > run.count) {
    EXPECT_TRUE(result.plan.by_rows());
  }

  // The files alone say the same.
  const ToolResult verified =
      run_tool({"verify", o.input, o.output, "--order", std::string(name_of(run.order)), "--json"});
  const auto json = nlohmann::json::parse(verified.out);
  EXPECT_EQ(json["check"]["failed"], run.count > 2 ? 1 : 0) << verified.out;
  if (!run.output.ends_with(".h5")) return;
  EXPECT_EQ(json["second_tries"], 1) << verified.out;
  const ToolResult text =
      run_tool({"verify", o.input, o.output, "--order", std::string(name_of(run.order))});
  EXPECT_NE(text.out.find("\n1 matrix came from a second try\n"), std::string::npos) << text.out;
}

TEST(SecondTryRun, ByRowsKeepsTheFirstWhereItIsBetter) {
  if (opencl_devices().empty()) GTEST_SKIP() << "no OpenCL device";
  SpoiledRun run{.name = "", .count = 2, .m = 4000, .n = 8};
  run.ranks = 3;
  run.spoil = Spoil::silently;
  run.on_device = true;
  const auto result_of = [&] {
    const TemporaryDirectory dir;
    write_input(dir / "a.h5", run);
    const FactorOptions o = options_of(run, dir);
    const std::unique_ptr<Reader> input = open_input_of(o, {});
    factor_spoiled(run, o, input->source());
    EXPECT_EQ(status_and_tries(read_text(dir / "report.csv")).front(), std::pair(0, 1));
    const Stored q = read_dataset(o.output, "/Q"), r = read_dataset(o.output, "/R");
    const auto numbers = [](BatchView<double> x) {
      return std::vector<double>(x.data, x.data + x.count * x.rows * x.cols);
    };
    return std::tuple(status_and_tries(read_text(dir / "report.csv")).back(), numbers(q.view()),
                      numbers(r.view()));
  };
  const auto [mended, mended_q, mended_r] = result_of();
  EXPECT_EQ(mended, std::pair(0, 2));
  run.second_error = 0.5F;
  const auto [kept, kept_q, kept_r] = result_of();
  EXPECT_EQ(kept, std::pair(1, 1));
  EXPECT_EQ(kept_q.size(), mended_q.size());
  // R of the first try: by 1 % too large.
  const std::size_t last_r = 64;
  EXPECT_NEAR(kept_r.at(last_r), 1.01 * mended_r.at(last_r), 1e-3 * mended_r.at(last_r));
  for (std::size_t i = 0; i < kept_q.size(); ++i) ASSERT_NEAR(kept_q[i], mended_q[i], 1e-4) << i;
}

const std::vector<SpoiledRun> runs{
    {.name = "Memory", .count = 40, .m = 30, .n = 20},
    {.name = "MemoryRanks", .count = 40, .m = 30, .n = 20, .ranks = 3},
    {.name = "Wide", .count = 5, .m = 20, .n = 30, .mode = Mode::complete},
    {.name = "RanksRaw", .count = 5, .m = 30, .n = 20, .ranks = 3, .mode = Mode::raw},
    {.name = "R", .count = 5, .m = 30, .n = 20, .mode = Mode::r},
    {.name = "Lapack", .count = 5, .m = 30, .n = 20, .sign = Sign::lapack},
    {.name = "Columns", .count = 5, .m = 30, .n = 20, .order = Order::column},
    {.name = "Mixed", .count = 5, .m = 30, .n = 20, .precision = {{}, true}},
    {.name = "Double", .count = 5, .m = 30, .n = 20, .precision = {ElementType::float64, false}},
    {.name = "Csv", .count = 5, .m = 30, .n = 20, .output = "q.csv"},
    {.name = "Forced", .count = 5, .m = 30, .n = 20, .variant = "cpu/blocked"},
    {.name = "Device", .count = 40, .m = 30, .n = 12, .on_device = true},
    {.name = "DeviceRaw", .count = 5, .m = 30, .n = 12, .on_device = true, .mode = Mode::raw},
    {.name = "DeviceRanks", .count = 40, .m = 30, .n = 12, .ranks = 2, .on_device = true},
    {.name = "DeviceForced",
     .count = 5,
     .m = 30,
     .n = 12,
     .on_device = true,
     .mode = Mode::r,
     .variant = "opencl/gram"},
    {.name = "Rows",
     .count = 1,
     .m = 60000,
     .n = 20,
     .spoil = Spoil::reader,
     .host_bytes = 12 << 20},
    {.name = "RowsLapack",
     .count = 1,
     .m = 60000,
     .n = 20,
     .spoil = Spoil::reader,
     .host_bytes = 12 << 20,
     .sign = Sign::lapack},
    {.name = "RowsRanks", .count = 2, .m = 4000, .n = 3, .ranks = 3, .spoil = Spoil::reader},
    {.name = "RowsRanksFirst",
     .count = 2,
     .m = 4000,
     .n = 3,
     .ranks = 3,
     .spoil = Spoil::reader,
     .marks_first = true},
    {.name = "RowsRanksCsv",
     .count = 2,
     .m = 4000,
     .n = 3,
     .ranks = 3,
     .spoil = Spoil::reader,
     .output = "q.csv"},
    {.name = "RowsDevice",
     .count = 1,
     .m = 4000,
     .n = 8,
     .ranks = 2,
     .spoil = Spoil::silently,
     .on_device = true},
    {.name = "RowsDeviceLeaf",
     .count = 1,
     .m = 4000,
     .n = 8,
     .ranks = 2,
     .spoil = Spoil::in_report,
     .on_device = true},
};

INSTANTIATE_TEST_SUITE_P(SecondTry, SecondTryRuns, testing::ValuesIn(runs),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace qrtool::test
