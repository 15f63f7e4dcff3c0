// SPDX-License-Identifier: Apache-2.0
// writer_test.cpp: factors as Matrix Market files are read back with the same bits, as one set.
#include <gtest/gtest.h>

#include <random>

#include "io/open/factors.hpp"
#include "io/open/output.hpp"
#include "io/write/writer.hpp"
#include "tests/io/reading.hpp"

namespace qrtool::mtx_writer_test {
namespace {

class MtxWriterTest : public FileTest {};

constexpr index_t m = 70, k = 40;

OutputSpec spec_of(ElementType type, bool force = false) {
  OutputSpec spec{.path = "o.mtx", .force = force, .leading = {}, .datasets = {}, .attributes = {}};
  spec.datasets = {{.name = "Q", .type = type, .rows = m, .cols = k},
                   {.name = "R", .type = type, .rows = k, .cols = k}};
  spec.with_report = true;
  spec.report_columns = report_columns({});
  return spec;
}

template <class T>
std::vector<T> random_numbers(index_t count) {
  std::mt19937 random(7);
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& x : numbers) x = static_cast<T>(std::normal_distribution<double>()(random));
  numbers.back() = 0;
  return numbers;
}

template <class T>
void write_and_read(bool by_rows) {
  const std::vector<T> q = random_numbers<T>(m * k), r = random_numbers<T>(k * k);
  const auto writer = create_output(spec_of(element_type<T>, true));
  if (by_rows) {
    // The first rows are written twice, as after a second try.
    writer->write_rows("Q", 0, 0, MatrixView<const T>{r.data(), 20, k, k});
    writer->restart("Q", 0);
    for (index_t i = 0; i < m; i += 35)
      writer->write_rows("Q", 0, i, MatrixView<const T>{q.data() + i * k, 35, k, k});
  } else {
    writer->write("Q", 0, packed<const T>(q.data(), 1, m, k));
  }
  writer->write("R", 0, packed<const T>(r.data(), 1, k, k));
  const MatrixReport line{};
  writer->write_report(0, {&line, 1});
  writer->commit();
  EXPECT_EQ(writer->files(), (std::vector<std::string>{"o.Q.mtx", "o.R.mtx", "o.report.json"}));
  const StoredFactors factors = open_factors("o.mtx", Order::automatic);
  EXPECT_EQ(factors.q->source().type, element_type<T>);
  EXPECT_EQ(read_all<T>(*factors.q), q);
  EXPECT_EQ(read_all<T>(*factors.r), r);
}

TEST_F(MtxWriterTest, TheSameBitsComeBack) {
  for (const bool by_rows : {false, true}) {
    write_and_read<float>(by_rows);
    write_and_read<double>(by_rows);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"o.Q.mtx", "o.R.mtx", "o.report.json"}));
  EXPECT_EQ(read_text("o.R.mtx").rfind("%%MatrixMarket matrix array real general\n40 40\n", 0), 0u);
}

TEST_F(MtxWriterTest, NothingIsLeftWithoutCommit) {
  create_output(spec_of(ElementType::float64));
  EXPECT_TRUE(names().empty());
}

TEST_F(MtxWriterTest, OneMatrixAlone) {
  OutputSpec spec = spec_of(ElementType::float64);
  spec.leading = {3};
  EXPECT_EQ(error_of<UsageError>([&] { create_output(spec); }),
            "'o.mtx': a Matrix Market file holds one matrix, not 3 | write HDF5 or CSV: let the "
            "name end in .h5 or .csv");
  spec.leading = {1};
  EXPECT_NO_THROW(create_output(spec));
}

TEST_F(MtxWriterTest, FactorsThatDoNotBelongTogether) {
  const std::string one = "%%MatrixMarket matrix array real general\n1 1\n1\n";
  EXPECT_EQ(error_of<InputError>([] { open_factors("o.mtx", Order::automatic); }),
            "cannot read 'o.R.mtx': there is no such file | o.mtx stands for the files o.Q.mtx, "
            "o.R.mtx and others, as factor writes them");
  write_text("o.R.mtx", one);
  EXPECT_EQ(error_of<InputError>([] { open_factors("o.R.mtx", Order::automatic); }),
            "cannot read 'o.R.R.mtx': there is no such file | name all of them together: o.mtx");
  write_text("o.tau.mtx", one);
  EXPECT_EQ(error_of<InputError>([] { open_factors("o.mtx", Order::automatic); }),
            "o.mtx: o.R.mtx, o.tau.mtx are files of different runs | remove those that you do not "
            "mean, or factor again with --force");
  write_text("o.tau.mtx", "1\n");
  EXPECT_EQ(error_of<InputError>([] { open_factors("o.mtx", Order::automatic); }),
            "o.tau.mtx: no Matrix Market file, although its name says so");
}

}  // namespace
}  // namespace qrtool::mtx_writer_test
