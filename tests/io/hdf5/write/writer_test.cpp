// SPDX-License-Identifier: Apache-2.0
// writer_test.cpp: reading an output gives the same numbers that were written, to the byte.
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/datasets/dataset.hpp"
#include "io/open/factors.hpp"
#include "io/open/input.hpp"
#include "io/open/output.hpp"
#include "tests/io/hdf5/writing.hpp"

namespace qrtool::hdf5_writer_test {
namespace {

using hdf5::Dims;

class Hdf5WriterTest : public FileTest {};

template <class T>
std::vector<T> read_dataset(const std::string& file, const std::string& name, Dims& dims) {
  const hdf5::Session session;
  const Handle opened(valid(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)), H5Fclose);
  const Handle dataset(valid(H5Dopen2(opened, name.c_str(), H5P_DEFAULT)), H5Dclose);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  dims.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  std::vector<T> values(elements_of(dims));
  EXPECT_GE(H5Dread(dataset, hdf5::native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
            0);
  return values;
}

template <class T>
void expect_round_trip(const std::vector<index_t>& leading, index_t m, index_t n, Order order,
                       index_t step) {
  SCOPED_TRACE(testing::Message() << leading.size() << " leading, " << m << "x" << n << " "
                                  << name_of(order) << " by " << step);
  OutputSpec spec = factors_spec(leading, m, n, order, element_type<T>);
  spec.force = true;
  write_file<T>(spec, step);
  const StoredFactors factors = open_factors("o.h5", Order::automatic);
  ASSERT_TRUE(factors.by_qrtool);
  EXPECT_EQ(factors.q->source().leading, leading);
  EXPECT_EQ(factors.q->source().m, m);
  EXPECT_EQ(factors.r->source().n, n);
  EXPECT_EQ(factors.r->source().order, order);
  EXPECT_EQ(factors.q->source().type, element_type<T>);
  const index_t count = count_of(leading), k = std::min(m, n);
  EXPECT_EQ(read_all<T>(*factors.q), random_numbers<T>(count * m * k, 1));
  EXPECT_EQ(read_all<T>(*factors.r), random_numbers<T>(count * k * n, 2));
}

TEST_F(Hdf5WriterTest, RoundTrips) {
  for (const auto& leading : std::vector<std::vector<index_t>>{{}, {1}, {7}, {2, 3}, {2, 1, 3}}) {
    for (const Order order : {Order::row, Order::column}) {
      for (const index_t step : {1, 4, 100}) {
        expect_round_trip<float>(leading, 5, 3, order, step);
        expect_round_trip<double>(leading, 3, 5, order, step);
      }
    }
  }
}

TEST_F(Hdf5WriterTest, RoundTripsOfManyChunks) {
  expect_round_trip<float>({5000}, 16, 16, Order::row, 777);
  expect_round_trip<double>({3, 700}, 16, 16, Order::row, 500);
  expect_round_trip<float>({3}, 1000, 900, Order::row, 1);
  expect_round_trip<float>({2}, 1000, 900, Order::column, 2);
  expect_round_trip<double>({}, 2, 300000, Order::row, 1);
  expect_round_trip<double>({}, 2, 300000, Order::column, 1);
  expect_round_trip<double>({}, 1500, 1100, Order::column, 1);
}

TEST_F(Hdf5WriterTest, ColumnOrderWithRowsLongerThanTheScratchMemory) {
  // The matrices are stored in rows of 3 and in rows of 1.2 million numbers, 9.6 MB.
  OutputSpec spec = factors_spec({}, 3, 3, Order::column, ElementType::float64);
  spec.datasets = {{"R", ElementType::float64, 3, 3}, {"V", ElementType::float64, 1200000, 3}};
  spec.with_report = false;
  write_file<double>(spec, 1);
  const auto reader = open_input({"o.h5", "/V", Order::column});
  EXPECT_EQ(read_all<double>(*reader), random_numbers<double>(3600000, 2));
}

TEST_F(Hdf5WriterTest, EmptyDimensions) {
  for (const auto& leading : std::vector<std::vector<index_t>>{{}, {0}, {2, 0}, {2}}) {
    for (const Order order : {Order::row, Order::column}) {
      expect_round_trip<float>(leading, 3, 0, order, 1);
      expect_round_trip<float>(leading, 0, 3, order, 1);
    }
  }
}

TEST_F(Hdf5WriterTest, StoredShapes) {
  Dims dims;
  OutputSpec spec = factors_spec({2, 3}, 4, 3, Order::column, ElementType::float64);
  write_file<double>(spec, 4);
  const std::vector<double> stored = read_dataset<double>("o.h5", "Q", dims);
  EXPECT_EQ(dims, (Dims{2, 3, 3, 4}));
  EXPECT_EQ(stored[1], random_numbers<double>(12, 1)[3]);
  EXPECT_EQ(read_dataset<double>("o.h5", "report/lower", dims)[4], 4.3);
  EXPECT_EQ(dims, (Dims{2, 3}));
  EXPECT_EQ(read_dataset<double>("o.h5", "report/residual", dims)[1], 1.1);
  EXPECT_EQ(read_dataset<double>("o.h5", "report/orthogonality", dims)[1], 1.2);
  EXPECT_EQ(read_dataset<double>("o.h5", "report/diagonal_ratio", dims)[1], 1.4);
  EXPECT_EQ(read_dataset<std::uint8_t>("o.h5", "report/status", dims),
            (std::vector<std::uint8_t>{0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(read_dataset<std::int32_t>("o.h5", "report/scale", dims)[5], 95);

  spec = factors_spec({}, 4, 3, Order::row, ElementType::float32);
  spec.path = "single.h5";
  write_file<float>(spec, 1);
  read_dataset<float>("single.h5", "Q", dims);
  EXPECT_EQ(dims, (Dims{4, 3}));
  EXPECT_EQ(read_dataset<std::int32_t>("single.h5", "report/scale", dims)[0], 100);
  EXPECT_EQ(dims, Dims{1});
}

TEST_F(Hdf5WriterTest, ReflectorsAndTau) {
  for (const auto& leading : std::vector<std::vector<index_t>>{{}, {5}, {2, 3}}) {
    for (const Order order : {Order::row, Order::column}) {
      OutputSpec spec = factors_spec(leading, 4, 3, order, ElementType::float64);
      spec.force = true;
      spec.datasets = {{"V", ElementType::float64, 4, 3},
                       {"tau", ElementType::float64, 1, 3, true}};
      write_file<double>(spec, 2);
      const StoredFactors factors = open_factors("o.h5", Order::automatic);
      const index_t count = count_of(leading);
      EXPECT_EQ(read_all<double>(*factors.v), random_numbers<double>(count * 12, 1));
      EXPECT_EQ(read_all<double>(*factors.tau), random_numbers<double>(count * 3, 2));
      Dims dims;
      read_dataset<double>("o.h5", "tau", dims);
      EXPECT_EQ(dims.size(), leading.size() + 1);
      EXPECT_EQ(dims.back(), 3u);
    }
  }
}

TEST_F(Hdf5WriterTest, ViewsWithGaps) {
  const auto padded = random_numbers<float>(2 * 60, 7);
  const BatchView<const float> view{padded.data(), 2, 5, 3, 10, 60};
  for (const Order order : {Order::row, Order::column}) {
    OutputSpec spec = factors_spec({2}, 5, 3, order, ElementType::float32);
    spec.force = true;
    const auto writer = create_output(spec);
    writer->write("Q", 0, view);
    writer->write("R", 0, BatchView<const float>{padded.data(), 2, 3, 3, 10, 60});
    writer->write_report(0, some_report(2));
    writer->commit();
    const std::vector<float> found = read_all<float>(*open_factors("o.h5", Order::row).q);
    for (index_t at = 0; at < 30; ++at) {
      EXPECT_EQ(found[at], padded[at / 15 * 60 + at / 3 % 5 * 10 + at % 3]);
    }
  }
}

TEST_F(Hdf5WriterTest, Attributes) {
  write_file<float>(factors_spec({2}, 4, 3, Order::row, ElementType::float32), 2);
  const hdf5::Session session;
  const hdf5::InputFile opened = hdf5::open_file("o.h5");
  const Handle& file = opened.handle;
  EXPECT_EQ(hdf5::string_attribute(opened, file, "format"), "qrtool");
  EXPECT_EQ(hdf5::string_attribute(opened, file, "variant"), "");
  EXPECT_GT(H5Aexists(file, "variant"), 0);
  const Handle eps(valid(H5Aopen(file, "eps", H5P_DEFAULT)), H5Aclose);
  double number = 0;
  H5Aread(eps, H5T_NATIVE_DOUBLE, &number);
  EXPECT_EQ(number, 0x1p-23);
  const Handle counted(valid(H5Aopen(file, "number", H5P_DEFAULT)), H5Aclose);
  std::int64_t integer = 0;
  H5Aread(counted, H5T_NATIVE_INT64, &integer);
  EXPECT_EQ(integer, 1);
}

TEST_F(Hdf5WriterTest, EqualRunsAreEqualFiles) {
  // 4002 matrices take two chunks, of which the last has a part without data.
  OutputSpec spec = factors_spec({8003}, 8, 5, Order::row, ElementType::float32);
  write_file<float>(spec, 1000);
  const std::string first = read_text("o.h5");
  spec.path = "p.h5";
  mallopt(M_PERTURB, 0x55);                                      // shows memory that is not set
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // and so do times
  write_file<float>(spec, 777);                                  // and so do the pieces
  mallopt(M_PERTURB, 0);
  EXPECT_TRUE(read_text("p.h5") == first);
}

TEST_F(Hdf5WriterTest, MatricesComeInOrderAndInTheirType) {
  const auto writer = create_output(factors_spec({4}, 4, 3, Order::row, ElementType::float32));
  const auto values = random_numbers<float>(24, 1);
  const auto view = packed(values.data(), 2, 4, 3);
  writer->write("Q", 0, view);
  for (const index_t first : {0, 1, 3}) {
    EXPECT_EQ(error_of<InternalError>([&] { writer->write("Q", first, view); }),
              "write: Q is written out of order");
  }
  const std::vector<double> wide(24);
  EXPECT_EQ(error_of<InternalError>([&] { writer->write("Q", 2, packed(wide.data(), 2, 4, 3)); }),
            "write: Q has another shape or type");
  writer->write("Q", 2, view);
}

TEST_F(Hdf5WriterTest, NoMoreSpaceThanNeeded) {
  write_file<float>(factors_spec({5000}, 16, 16, Order::row, ElementType::float32), 1000);
  struct stat info {};
  ASSERT_EQ(stat("o.h5", &info), 0);
  const auto data = 5000.0 * (2 * 256 * 4 + 4 * 8 + 1 + 4);
  EXPECT_LT(static_cast<double>(info.st_size), 1.01 * data + 20000);
  EXPECT_LT(static_cast<double>(info.st_blocks) * 512, 1.01 * data + 60000);
}

TEST_F(Hdf5WriterTest, SameFile) {
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {2, 2});
  write_text("a.csv", "1\n");
  write_text("b.Q.csv", "1\n");
  ASSERT_EQ(symlink("a.h5", "soft.h5"), 0);
  ASSERT_EQ(link("a.h5", "hard.h5"), 0);
  for (const char* input : {"a.h5", "a.h5:/A", "./a.h5"}) {
    for (const char* output : {"a.h5", "soft.h5", "hard.h5"}) {
      EXPECT_EQ(error_of<UsageError>([&] { refuse_same_file(input, output); }),
                "'" + std::string(output) + "': input and output are the same file");
    }
  }
  EXPECT_EQ(error_of<UsageError>([] { refuse_same_file("a.csv", "a.csv"); }),
            "'a.csv': input and output are the same file");
  EXPECT_EQ(error_of<UsageError>([] { refuse_same_file("b.Q.csv", "b.csv"); }),
            "'b.Q.csv': input and output are the same file");
  EXPECT_NO_THROW(refuse_same_file("a.h5", "new.h5"));
  EXPECT_NO_THROW(refuse_same_file("none.h5", "none.h5"));
  EXPECT_NO_THROW(refuse_same_file("a.h5", "a.csv"));
}

}  // namespace
}  // namespace qrtool::hdf5_writer_test
