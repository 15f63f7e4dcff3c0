// SPDX-License-Identifier: Apache-2.0
// writer_test.cpp: what is written is read again, whole or by rows, and appears complete or not at
// all.
#include "io/write/writer.hpp"

#include "io/open/factors.hpp"
#include "io/open/input.hpp"
#include "io/open/output.hpp"
#include "io/read/reader.hpp"
#include "tests/io/reading.hpp"

namespace qrtool::npy_writer_test {
namespace {

using Names = std::vector<std::string>;

class NpyWriterTest : public FileTest {};

OutputSpec spec_of(const std::string& path, std::vector<index_t> leading, index_t m, index_t n) {
  OutputSpec spec;
  spec.path = path;
  spec.leading = std::move(leading);
  spec.datasets = {{"Q", ElementType::float64, m, n}, {"R", ElementType::float64, n, n}};
  spec.with_report = true;
  spec.report_columns = report_columns({});
  spec.attributes = {{"format", "qrtool"}, {"mode", "reduced"}, {"source_file", "a\xff.npy"}};
  spec.threads = 3;
  return spec;
}

std::vector<double> numbers(index_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (index_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = 0.1 * static_cast<double>(i);
  return values;
}

/// Writes Q by rows, with a matrix that is begun twice and one that is completed twice.
void write_by_rows(const OutputSpec& spec, index_t m, index_t n) {
  const auto writer = create_output(spec);
  const std::vector<double> q = numbers(3 * m * n), r = numbers(n * n), wrong(q.size(), -1);
  const auto rows_of = [&](const std::vector<double>& from, index_t b, index_t i, index_t rows) {
    return MatrixView<const double>{from.data() + (b * m + i) * n, rows, n, n};
  };
  const index_t half = m / 2;
  for (index_t b = 0; b < 3; ++b) {
    writer->restart("Q", b);  // nothing of it is written yet
    writer->write_rows("Q", b, 0, rows_of(wrong, b, 0, b == 1 ? half : m));
    writer->restart("Q", b);
    writer->write_rows("Q", b, 0, rows_of(q, b, 0, half));
    writer->write_rows("Q", b, half, rows_of(q, b, half, m - half));
    writer->write("R", b, packed(r.data(), 1, n, n));
    writer->write_report(b, std::vector<MatrixReport>(1));
  }
  writer->commit();
}

TEST_F(NpyWriterTest, RowsAndMatricesGiveTheSame) {
  // The second size is larger than a piece of 1 MiB.
  for (const index_t m : {5, 100001}) {
    for (const char* path : {"rows.npy", "rows.npz"}) {
      OutputSpec spec = spec_of(path, {3}, m, 4);
      spec.force = true;
      write_by_rows(spec, m, 4);
      const std::vector<double> q = numbers(3 * m * 4), r = numbers(16);
      spec.path = std::string("whole") + std::string(path).substr(4);
      const auto writer = create_output(spec);
      writer->write("Q", 0, packed(q.data(), 3, m, 4));
      for (index_t b = 0; b < 3; ++b) writer->write("R", b, packed(r.data(), 1, 4, 4));
      writer->write_report(0, std::vector<MatrixReport>(3));
      writer->commit();
      for (const std::string& name : {std::string(path), spec.path}) {
        const StoredFactors factors = open_factors(name, Order::row, 2);
        EXPECT_TRUE(factors.by_qrtool);
        EXPECT_EQ(factors.tries, std::vector<std::uint8_t>(3, MatrixReport{}.tries));
        EXPECT_EQ(read_all<double>(*factors.q), q) << name;
      }
    }
    EXPECT_EQ(read_text("rows.Q.npy"), read_text("whole.Q.npy"));
    EXPECT_EQ(read_text("rows.report.json"), read_text("whole.report.json"));
    EXPECT_EQ(read_text("rows.npz"), read_text("whole.npz"));
  }
}

TEST_F(NpyWriterTest, MatricesThatAreNotPacked) {
  OutputSpec spec = spec_of("a.npy", {2}, 3, 2);
  spec.datasets.resize(1);
  spec.with_report = false;
  const std::vector<double> values = numbers(40);
  const auto writer = create_output(spec);
  writer->write("Q", 0, BatchView<const double>{values.data(), 2, 3, 2, 5, 20});
  writer->commit();
  const auto reader = open_input({.path = "a.Q.npy", .dataset = {}});
  const std::vector<double> found = read_all<double>(*reader);
  EXPECT_EQ(found, (std::vector<double>{values[0], values[1], values[5], values[6], values[10],
                                        values[11], values[20], values[21], values[25], values[26],
                                        values[30], values[31]}));
}

TEST_F(NpyWriterTest, NothingAppearsBeforeTheCommit) {
  for (const char* path : {"o.npy", "o.npz"}) {
    {
      const auto writer = create_output(spec_of(path, {}, 3, 2));
      const std::vector<double> q = numbers(6);
      writer->write("Q", 0, packed(q.data(), 1, 3, 2));
      for (const std::string& name : names()) EXPECT_TRUE(name.ends_with(".tmp")) << name;
    }
    EXPECT_EQ(names(), Names{});
  }
}

TEST_F(NpyWriterTest, FilesOfAnotherModeAreRemovedWithForce) {
  write_text("o.V.npy", "");
  write_text("o.tau.npy", "");
  EXPECT_EQ(error_of<OutputError>([] { create_output(spec_of("o.npy", {3}, 5, 4)); }),
            "'o.V.npy' exists, a file of 'o.npy' by another --mode | use --force to remove it");
  OutputSpec spec = spec_of("o.npy", {3}, 5, 4);
  spec.force = true;
  write_by_rows(spec, 5, 4);
  EXPECT_EQ(names(), (Names{"o.Q.npy", "o.R.npy", "o.report.json"}));
}

TEST_F(NpyWriterTest, AReportThatIsDamaged) {
  OutputSpec spec = spec_of("o.npy", {3}, 5, 4);
  write_by_rows(spec, 5, 4);
  const std::string report = read_text("o.report.json");
  for (const std::string& text : {std::string("{}"), std::string("[1, 2"), report.substr(0, 300)}) {
    write_text("o.report.json", text);
    EXPECT_TRUE(error_of<InputError>([] {
                  open_factors("o.npy", Order::row);
                }).starts_with("o.report.json: damaged: it is not the JSON of a report | "));
  }
  std::filesystem::remove("o.report.json");
  EXPECT_FALSE(open_factors("o.npy", Order::row).by_qrtool);
  std::filesystem::remove("o.Q.npy");
  EXPECT_EQ(open_factors("o.npy", Order::row).q, nullptr) << "R alone";
}

}  // namespace
}  // namespace qrtool::npy_writer_test
