// SPDX-License-Identifier: Apache-2.0
// writer_test.cpp: reading the written text gives the same bits.
#include <bit>
#include <random>

#include "io/csv/writer.hpp"
#include "io/open/factors.hpp"
#include "io/open/input.hpp"
#include "io/open/output.hpp"
#include "io/read/reader.hpp"
#include "io/write/factor_files.hpp"
#include "io/write/writer.hpp"
#include "tests/io/file_test.hpp"

namespace qrtool::csv_writer_test {
namespace {

using Names = std::vector<std::string>;

class CsvWriterTest : public FileTest {};

OutputSpec matrix_spec(const std::string& path, std::vector<index_t> leading, index_t m, index_t n,
                       ElementType type) {
  OutputSpec spec;
  spec.path = path;
  spec.leading = std::move(leading);
  spec.datasets = {{"A", type, m, n}};
  return spec;
}

OutputSpec factors_spec(const std::string& path) {
  OutputSpec spec = matrix_spec(path, {2}, 2, 1, ElementType::float64);
  spec.datasets = {{"Q", ElementType::float64, 2, 1}, {"R", ElementType::float64, 1, 1}};
  spec.with_report = true;
  spec.report_columns = report_columns({});
  return spec;
}

void write_factors(const OutputSpec& spec) {
  const auto writer = create_output(spec);
  const std::vector<double> q{1, 2, 3, 4}, r{0.1, -5};
  writer->write("Q", 0, packed(q.data(), 1, 2, 1));
  writer->write("R", 0, packed(r.data(), 2, 1, 1));
  writer->write("Q", 1, packed(q.data() + 2, 1, 2, 1));
  const MatrixReport line{0.5, 0.25, 0, 1, Status::ok, 3};
  writer->write_report(0, std::vector{line, line});
  writer->commit();
}

TEST_F(CsvWriterTest, OneMatrix) {
  const auto writer = create_output(matrix_spec("a.csv", {}, 2, 2, ElementType::float64));
  const std::vector<double> values{1, -0.0, 1e-7, std::numeric_limits<double>::infinity()};
  writer->write("A", 0, packed(values.data(), 1, 2, 2));
  EXPECT_EQ(writer->files(), Names{"a.csv"});
  writer->commit();
  EXPECT_EQ(read_text("a.csv"), "1,-0\n1e-07,inf\n");
  EXPECT_EQ(names(), Names{"a.csv"});
}

TEST_F(CsvWriterTest, RestartsTheLastMatrix) {
  // The second size does not fit the buffer, so that its rows are on the disk already.
  for (const index_t rows : {3, 100000}) {
    OutputSpec spec = matrix_spec("a.csv", {2}, rows, 2, ElementType::float64);
    spec.force = true;
    const auto writer = create_output(spec);
    const std::vector<double> values(static_cast<std::size_t>(2 * rows), 0.5),
        wrong(static_cast<std::size_t>(2 * rows), -0.123456789);
    writer->write_rows("A", 0, 0, MatrixView<const double>{values.data(), rows, 2, 2});
    writer->restart("A", 1);  // nothing of it is written yet
    writer->write_rows("A", 1, 0, MatrixView<const double>{wrong.data(), rows, 2, 2});
    writer->restart("A", 1);
    writer->write_rows("A", 1, 0, MatrixView<const double>{values.data(), 1, 2, 2});
    writer->write_rows("A", 1, 1, MatrixView<const double>{values.data(), rows - 1, 2, 2});
    writer->commit();
    std::string matrix;
    for (index_t i = 0; i < rows; ++i) matrix += "0.5,0.5\n";
    EXPECT_EQ(read_text("a.csv"), "# matrix 0\n" + matrix + "\n# matrix 1\n" + matrix);
  }
}

TEST_F(CsvWriterTest, SeparatorFollowsTheEnding) {
  for (const auto& [name, text] :
       {std::pair{"a.csv", "1,2\n"}, std::pair{"a.tsv", "1\t2\n"}, std::pair{"a.TXT", "1 2\n"}}) {
    const auto writer = create_output(matrix_spec(name, {}, 1, 2, ElementType::float64));
    const std::vector<double> values{1, 2};
    writer->write("A", 0, packed(values.data(), 1, 1, 2));
    writer->commit();
    EXPECT_EQ(read_text(name), text);
  }
}

TEST_F(CsvWriterTest, Factors) {
  write_factors(factors_spec("out.csv"));
  EXPECT_EQ(names(), (Names{"out.Q.csv", "out.R.csv", "out.report.csv"}));
  EXPECT_EQ(read_text("out.Q.csv"), "# matrix 0\n1\n2\n\n# matrix 1\n3\n4\n");
  EXPECT_EQ(read_text("out.R.csv"), "# matrix 0\n0.1\n\n# matrix 1\n-5\n");
  EXPECT_EQ(read_text("out.report.csv"),
            "matrix,residual,orthogonality,lower,diagonal_ratio,status,scale,tries,checksum\n"
            "0,0.5,0.25,0,1,0,3,1,0xbda5cd3e9db74e7d\n1,0.5,0.25,0,1,0,3,1,0xa84ec7166208d232\n");
  const StoredFactors factors = open_factors("out.csv", Order::row);
  EXPECT_EQ(factors.q->source().leading, std::vector<index_t>{2});
  EXPECT_EQ(factors.q->source().m, 2);
  EXPECT_EQ(factors.r->source().n, 1);
  EXPECT_FALSE(factors.v || factors.tau);
}

TEST_F(CsvWriterTest, ReflectorsAndTau) {
  OutputSpec spec = factors_spec("out.csv");
  spec.datasets = {{"V", ElementType::float64, 3, 2}, {"tau", ElementType::float64, 1, 2, true}};
  spec.with_report = false;
  const auto writer = create_output(spec);
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  writer->write("V", 0, packed(values.data(), 2, 3, 2));
  writer->write("tau", 0, packed(values.data(), 2, 1, 2));
  writer->commit();
  const StoredFactors factors = open_factors("out.csv", Order::row);
  EXPECT_EQ(factors.v->source().m, 3);
  EXPECT_EQ(factors.tau->source().n, 2);
  auto tau = poisoned<double>(4);
  factors.tau->read(0, packed(tau.data(), 2, 1, 2));
  EXPECT_EQ(tau, (std::vector<double>{1, 2, 3, 4}));
}

template <class T, class Bits>
void expect_same_bits(const std::string& name) {
  std::mt19937_64 random(1);
  std::vector<T> values(30000);
  for (T& value : values) {
    do value = std::bit_cast<T>(static_cast<Bits>(random()));
    while (std::isnan(value));
  }
  OutputSpec spec = matrix_spec(name, {3}, 100, 100, element_type<T>);
  spec.datasets = {{"R", element_type<T>, 100, 100}};
  const auto writer = create_output(spec);
  writer->write("R", 0, packed<const T>(values.data(), 3, 100, 100));
  writer->commit();
  const auto reader = std::move(open_factors(name, Order::row).r);
  EXPECT_EQ(reader->source().type, element_type<T>);
  auto found = poisoned<T>(30000);
  reader->read(0, packed(found.data(), 3, 100, 100));
  EXPECT_EQ(found, values);
  // Reading in double gives the same numbers, too.
  auto wide = poisoned<double>(30000);
  reader->read(0, packed(wide.data(), 3, 100, 100));
  EXPECT_EQ(wide, std::vector<double>(values.begin(), values.end()));
}

TEST_F(CsvWriterTest, EveryBitComesBack) {
  expect_same_bits<double, std::uint64_t>("d.csv");
  expect_same_bits<float, std::uint32_t>("f.csv");
}

TEST_F(CsvWriterTest, SingleIsMarkedButInputIsDouble) {
  const auto writer = create_output(matrix_spec("a.csv", {}, 1, 1, ElementType::float32));
  const float value = 0.1f;
  writer->write("A", 0, packed(&value, 1, 1, 1));
  writer->commit();
  EXPECT_EQ(read_text("a.csv"), "# float32\n0.1\n");
  const auto reader = open_input({"a.csv", "", Order::automatic});
  EXPECT_EQ(reader->source().type, ElementType::float64);
  EXPECT_EQ(reader->source().stored_type, "float32");
  double found = 0;
  reader->read(0, packed(&found, 1, 1, 1));
  EXPECT_EQ(found, static_cast<double>(value));
}

TEST_F(CsvWriterTest, NoFileOfAResultMayExist) {
  for (const char* name : {"out.Q.csv", "out.R.csv", "out.report.csv"}) {
    write_text(name, "old");
    EXPECT_EQ(error_of<OutputError>([] { create_output(factors_spec("out.csv")); }),
              "'" + std::string(name) + "' exists | use --force to replace it");
    EXPECT_EQ(names(), Names{name});
    std::filesystem::remove(name);
  }
  write_text("out.csv", "not written to");
  write_factors(factors_spec("out.csv"));
  OutputSpec forced = factors_spec("out.csv");
  forced.force = true;
  { const auto writer = create_output(forced); }
  EXPECT_NE(read_text("out.Q.csv"), "");
  write_factors(forced);
  EXPECT_EQ(read_text("out.csv"), "not written to");
}

TEST_F(CsvWriterTest, HalfAResultIsNotLeft) {
  {
    const auto writer = create_output(factors_spec("out.csv"));
    write_text("out.report.csv", "other");
    EXPECT_EQ(error_of<OutputError>([&] { writer->commit(); }),
              "'out.report.csv' was created meanwhile | use --force to replace it");
  }
  EXPECT_EQ(names(), Names{"out.report.csv"});
}

TEST_F(CsvWriterTest, WhatTextCannotHold) {
  EXPECT_EQ(error_of<OutputError>(
                [] { create_output(matrix_spec("a.csv", {2}, 0, 3, ElementType::float64)); }),
            "'a.csv': text cannot hold 2 A matrices of 0 x 3 | write an HDF5 file: let the name "
            "end in .h5");
  EXPECT_EQ(error_of<OutputError>(
                [] { create_output(matrix_spec("a.csv", {0}, 3, 3, ElementType::float64)); }),
            "'a.csv': text cannot hold 0 A matrices of 3 x 3 | write an HDF5 file: let the name "
            "end in .h5");
  EXPECT_EQ(names(), Names{});
}

TEST_F(CsvWriterTest, FilesOfAnotherModeAreRefusedOrRemoved) {
  write_text("out.V.csv", "old");
  write_text("out.tau.csv", "old");
  OutputSpec spec = factors_spec("out.csv");
  EXPECT_EQ(error_of<OutputError>([&] { create_output(spec); }),
            "'out.V.csv' exists, a file of 'out.csv' by another --mode | use --force to remove it");
  spec.force = true;
  write_factors(spec);
  EXPECT_EQ(names(), (Names{"out.Q.csv", "out.R.csv", "out.report.csv"}));
  spec.datasets = {{"A", ElementType::float64, 2, 1}};
  spec.with_report = false;
  const auto matrices = create_output(spec);
  const std::vector<double> a{1, 2, 3, 4};
  matrices->write("A", 0, packed(a.data(), 2, 2, 1));
  matrices->commit();
  EXPECT_EQ(names().size(), 4u) << "matrices are no factors: nothing is removed";
}

TEST_F(CsvWriterTest, NamesOfOtherFormatsAreRefused) {
  for (const char* name : {"o.mat", "o.MM", "o.parquet", "o.csv.gz"}) {
    const std::string error = error_of<UsageError>(
        [&] { create_output(matrix_spec(name, {}, 1, 1, ElementType::float64)); });
    EXPECT_NE(error.find("files cannot be written | write o"), std::string::npos) << error;
  }
  EXPECT_EQ(error_of<UsageError>([] { check_output_names("o.h5:/Q", "", false); }),
            "'o.h5:/Q': the output is a file; its datasets have fixed names | write o.h5");
  std::filesystem::create_directory("folder.npy");
  std::filesystem::create_directory("c:");
  for (const char* name : {"o.h5", "o", "o.dat", "folder.npy/o", "c:/o.h5"}) {
    create_output(matrix_spec(name, {}, 1, 1, ElementType::float64));
  }
}

TEST_F(CsvWriterTest, AReportIsNoFileOfTheFactors) {
  for (const char* report : {"o.Q.csv", "./o.R.csv", "o.V.csv", "o.report.csv", "o.csv"}) {
    EXPECT_EQ(error_of<UsageError>([&] { check_report_name("o.csv", report); }),
              "--report '" + std::string(report) +
                  "' would be a file of the factors 'o.csv' | give the report a name of its own");
  }
  write_text("o.h5", "");
  std::filesystem::create_symlink("o.h5", "link.json");
  EXPECT_NE(error_of<UsageError>([] { check_report_name("o.h5", "link.json"); }), "no error");
  check_report_name("o.csv", "o.json");
  check_report_name("o.csv", "P.csv");
}

TEST_F(CsvWriterTest, WhatExistsIsNoticedBeforeAnyWork) {
  write_text("o.tau.csv", "");
  write_text("r.csv", "");
  EXPECT_EQ(error_of<OutputError>([] { check_output_names("o.csv", "", false); }),
            "'o.tau.csv' exists | use --force to replace it");
  EXPECT_EQ(error_of<OutputError>([] { check_output_names("p.csv", "r.csv", false); }),
            "'r.csv' exists | use --force to replace it");
  check_output_names("o.csv", "r.csv", true);
  check_output_names("p.csv", "", false);
}

TEST_F(CsvWriterTest, NamesOfFiles) {
  EXPECT_EQ(factor_file("a/out.csv", "Q"), "a/out.Q.csv");
  EXPECT_EQ(factor_file("out.TSV", "tau"), "out.tau.TSV");
  EXPECT_EQ(report_file("out.tsv", csv_codec.report_ending), "out.report.csv");
  EXPECT_EQ(factor_file("out.csv", "A"), "out.csv");
  EXPECT_EQ(factor_file("-", "R"), "-");
  // A name need not have an ending, although that of its folder may have a dot.
  EXPECT_EQ(factor_file("out", "X"), "out.X");
  EXPECT_EQ(factor_file("a.d/out", "X"), "a.d/out.X");
  EXPECT_EQ(report_file("a.d/out", ".json"), "a.d/out.report.json");
}

}  // namespace
}  // namespace qrtool::csv_writer_test
