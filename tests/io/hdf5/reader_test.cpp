// SPDX-License-Identifier: Apache-2.0
// reader_test.cpp: the reader gives the right numbers for every layout and type, and refuses
// damage.
#include <fstream>
#include <random>

#include "tests/io/hdf5/reading.hpp"

#include "io/open/factors.hpp"

namespace qrtool::hdf5_reader_test {
namespace {

using hdf5::Dims;

class Hdf5ReaderTest : public FileTest {};

/// The number that a reader of the stored `values` must give for matrix b at (i, j).
template <class T>
T expected(const std::vector<double>& values, const Source& s, index_t b, index_t i, index_t j) {
  const index_t at = s.order == Order::column ? j * s.m + i : i * s.n + j;
  return static_cast<T>(values[static_cast<std::size_t>(b * s.m * s.n + at)]);
}

/// Reads every range of matrices, and every range of rows of every matrix.
template <class T>
void expect_every_range(Reader& reader, const std::vector<double>& values) {
  const Source& s = reader.source();
  for (index_t first = 0; first <= s.count(); ++first) {
    for (index_t count = 0; first + count <= s.count(); ++count) {
      const std::vector<T> found = read_range<T>(reader, first, count);
      for (index_t at = 0; at < std::ssize(found); ++at) {
        const index_t b = first + at / (s.m * s.n), i = at / s.n % s.m, j = at % s.n;
        ASSERT_EQ(found[at], expected<T>(values, s, b, i, j)) << first << " " << count << " " << at;
      }
    }
  }
  for (index_t b = 0; b < s.count(); ++b) {
    for (index_t first = 0; first <= s.m; ++first) {
      for (index_t rows = 0; first + rows <= s.m; ++rows) {
        const std::vector<T> found = read_row_range<T>(reader, b, first, rows);
        for (index_t at = 0; at < std::ssize(found); ++at) {
          ASSERT_EQ(found[at], expected<T>(values, s, b, first + at / s.n, at % s.n));
        }
      }
    }
  }
}

TEST(CutIntoBoxes, CoversTheRangeInOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<index_t> leading(random() % 5);
    index_t total = 1;
    for (index_t& extent : leading) total *= extent = 1 + random() % 5;
    const index_t first = random() % total, count = random() % (total - first + 1);
    const auto boxes = hdf5::cut_into_boxes(leading, first, count);
    EXPECT_LE(boxes.size(), std::max<std::size_t>(1, 2 * leading.size()));
    index_t next = first;
    for (const hdf5::Box& box : boxes) {
      // Walks the box in row order; each index must be the next of the flat order.
      for (index_t at = 0; at < box.matrices; ++at) {
        index_t rest = at, flat = 0, below = 1;
        for (std::size_t d = leading.size(); d-- > 0;) {
          const auto extent = static_cast<index_t>(box.count[d]);
          flat += (static_cast<index_t>(box.start[d]) + rest % extent) * below;
          rest /= extent;
          below *= leading[d];
        }
        ASSERT_EQ(rest, 0);
        ASSERT_EQ(flat, next++);
      }
    }
    ASSERT_EQ(next, first + count);
  }
}

TEST_F(Hdf5ReaderTest, EveryNumericType) {
  const hdf5::Session session;
  const Handle half(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  const struct {
    hid_t type;
    const char* text;
    ElementType element;
  } cases[] = {{H5T_STD_I8LE, "int8", ElementType::float64},
               {H5T_STD_U8LE, "uint8", ElementType::float64},
               {H5T_STD_I16BE, "big-endian int16", ElementType::float64},
               {H5T_STD_U16LE, "uint16", ElementType::float64},
               {H5T_STD_I32LE, "int32", ElementType::float64},
               {H5T_STD_U32BE, "big-endian uint32", ElementType::float64},
               {H5T_STD_I64LE, "int64", ElementType::float64},
               {H5T_STD_U64LE, "uint64", ElementType::float64},
               {half, "float16", ElementType::float32},
               {H5T_IEEE_F32LE, "float32", ElementType::float32},
               {H5T_IEEE_F32BE, "big-endian float32", ElementType::float32},
               {H5T_IEEE_F64LE, "float64", ElementType::float64},
               {H5T_IEEE_F64BE, "big-endian float64", ElementType::float64}};
  for (const auto& each : cases) {
    SCOPED_TRACE(each.text);
    write_numbers("a.h5", "A", each.type, {3, 4, 2});
    const auto reader = open_file("a.h5");
    EXPECT_EQ(reader->source().stored_type, each.text);
    EXPECT_EQ(reader->source().type, each.element);
    EXPECT_EQ(reader->source().dataset, "/A");
    EXPECT_EQ(reader->source().leading, std::vector<index_t>{3});
    EXPECT_EQ(read_all<double>(*reader), small_numbers(24));
    const std::vector<double> values = small_numbers(24);
    EXPECT_EQ(read_all<float>(*reader), std::vector<float>(values.begin(), values.end()));
  }
}

TEST_F(Hdf5ReaderTest, EveryLayoutAndRangeInBothOrders) {
  const hdf5::Session session;
  std::vector<std::pair<const char*, Handle>> layouts;
  for (const char* name : {"contiguous", "compact", "chunked", "gzip", "shuffle", "fletcher32"}) {
    layouts.emplace_back(name, creation_properties());
  }
  H5Pset_layout(layouts[1].second, H5D_COMPACT);
  H5Pset_deflate(layouts[3].second, 4);
  H5Pset_shuffle(layouts[4].second);
  H5Pset_deflate(layouts[4].second, 1);
  H5Pset_fletcher32(layouts[5].second);
  for (const Dims& leading : {Dims{}, Dims{1}, Dims{5}, Dims{2, 3}, Dims{2, 1, 3}, Dims{1, 1}}) {
    Dims dims = leading;
    dims.insert(dims.end(), {4, 3});
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const Handle& properties = layouts[i].second;
      Dims chunk(dims.size(), 2);
      for (std::size_t d = 0; d < dims.size(); ++d) chunk[d] = std::min(chunk[d], dims[d]);
      if (i >= 2) H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
      write_numbers("a.h5", "A", H5T_IEEE_F64LE, dims, properties);
      for (const Order order : {Order::row, Order::column}) {
        SCOPED_TRACE(std::string(layouts[i].first) + " " + std::string(name_of(order)));
        const auto reader = open_file("a.h5", "", order);
        EXPECT_EQ(reader->source().leading, std::vector<index_t>(leading.begin(), leading.end()));
        EXPECT_EQ(reader->source().m, order == Order::row ? 4 : 3);
        EXPECT_EQ(reader->source().n, order == Order::row ? 3 : 4);
        expect_every_range<double>(*reader, small_numbers(elements_of(dims)));
        expect_every_range<float>(*reader, small_numbers(elements_of(dims)));
      }
    }
  }
}

TEST_F(Hdf5ReaderTest, ColumnOrderInPieces) {
  // Matrices of 3 MiB are read two or three at a time; a matrix of 12 MiB is read in parts.
  for (const Dims& dims : {Dims{5, 512, 768}, Dims{2, 1024, 1536}}) {
    write_numbers("a.h5", "A", H5T_IEEE_F64LE, dims);
    const auto reader = open_file("a.h5", "", Order::column);
    const auto values = small_numbers(elements_of(dims));
    const std::vector<double> found = read_all<double>(*reader);
    const Source& s = reader->source();
    for (index_t b = 0; b < s.count(); ++b) {
      for (index_t i = 0; i < s.m; ++i) {
        for (index_t j = 0; j < s.n; ++j) {
          ASSERT_EQ(found[(b * s.m + i) * s.n + j], expected<double>(values, s, b, i, j));
        }
      }
    }
    const std::vector<double> rows = read_row_range<double>(*reader, 1, 100, 500);
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), found.begin() + (s.m + 100) * s.n));
  }
}

TEST_F(Hdf5ReaderTest, EmptyDimensions) {
  for (const Dims& dims : {Dims{0, 3, 4}, Dims{2, 0, 4}, Dims{2, 3, 0}, Dims{0, 3}, Dims{3, 0}}) {
    {
      const Handle file = create_file("a.h5");
      create_dataset(file, "A", H5T_IEEE_F32LE, dims);
    }
    for (const Order order : {Order::row, Order::column}) {
      const auto reader = open_file("a.h5", "", order);
      EXPECT_TRUE(read_all<double>(*reader).empty());
      if (reader->source().count() > 0) {
        EXPECT_TRUE(read_row_range<float>(*reader, 0, 0, 0).empty());
      }
    }
  }
}

TEST_F(Hdf5ReaderTest, MatlabAndOctaveAreColumnOrder) {
  const hdf5::Session session;
  {
    const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    H5Pset_userblock(creation, 512);
    const Handle file = create_file("matlab.h5", creation);
    add_string_attribute(add_numbers(file, "A", H5T_IEEE_F64LE, {3, 2}), "MATLAB_class", "double");
    add_string_attribute(add_numbers(file, "title", H5T_STD_U16LE, {5, 1}), "MATLAB_class", "char");
    const Handle cells = create_group(file, "#refs#");
    add_numbers(cells, "a", H5T_IEEE_F64LE, {2, 2});
  }
  {
    std::fstream block("matlab.h5", std::ios::in | std::ios::out | std::ios::binary);
    block << "MATLAB 7.3 MAT-file, Platform: GLNXA64";
  }
  {
    const Handle file = create_file("octave.h5");
    const Handle variable = create_group(file, "A");
    add_string_attribute(variable, "OCTAVE_NEW_FORMAT", "1");
    add_numbers(variable, "value", H5T_IEEE_F64LE, {3, 2});
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    create_dataset(variable, "type", type, {1});
  }
  for (const char* name : {"matlab.h5", "octave.h5"}) {
    for (const char* dataset : {"", "/A", "A"}) {
      const auto reader = open_file(name, dataset);
      EXPECT_EQ(reader->source().order, Order::column) << name;
      EXPECT_EQ(reader->source().dataset, "/A");
      EXPECT_EQ(reader->source().m, 2);
      EXPECT_EQ(read_all<double>(*reader), (std::vector<double>{1, 3, 5, 2, 4, 6}));
    }
    EXPECT_EQ(open_file(name, "", Order::row)->source().m, 3);
  }
  EXPECT_EQ(input_error("matlab.h5", "title"),
            "matlab.h5: dataset /title is a MATLAB char array; only numbers can be read");
}

TEST_F(Hdf5ReaderTest, DamageIsNamedByMatrix) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  const Dims chunk{1, 4, 4};
  H5Pset_chunk(creation, 3, chunk.data());
  H5Pset_fletcher32(creation);
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {20, 4, 4}, creation);
  const std::vector<double> values = small_numbers(20 * 16);
  std::string bytes = read_text("a.h5");
  const std::size_t at =
      bytes.find(std::string(reinterpret_cast<const char*>(&values[17 * 16]), 16 * 8));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 3] ^= 1;
  write_text("a.h5", bytes);
  const std::string message = "a.h5: dataset /A is damaged (checksum mismatch at matrix 17)";
  for (const Order order : {Order::row, Order::column}) {
    const auto reader = open_file("a.h5", "", order);
    EXPECT_EQ(error_of<InputError>([&] { read_all<double>(*reader); }), message);
    EXPECT_EQ(error_of<InputError>([&] { read_range<float>(*reader, 10, 8); }), message);
    EXPECT_EQ(error_of<InputError>([&] { read_row_range<double>(*reader, 17, 0, 1); }), message);
    EXPECT_EQ(read_range<double>(*reader, 16, 1).size(), 16u);
    EXPECT_EQ(read_range<double>(*reader, 18, 2).size(), 32u);
  }
}

TEST_F(Hdf5ReaderTest, TooLargeForSingle) {
  {
    const Handle file = create_file("a.h5");
    const Handle dataset = create_dataset(file, "A", H5T_IEEE_F64LE, {3, 1, 2});
    const double inf = std::numeric_limits<double>::infinity();
    const double values[] = {1, inf, 2, -1e300, 3, 4};
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  }
  const auto reader = open_file("a.h5");
  EXPECT_EQ(read_all<double>(*reader)[3], -1e300);
  EXPECT_TRUE(std::isinf(read_range<float>(*reader, 0, 1)[1]));
  EXPECT_EQ(error_of<InputError>([&] { read_all<float>(*reader); }),
            "a.h5: dataset /A holds a number at matrix 1 that is too large for float32 | use "
            "--precision double");
  EXPECT_EQ(read_range<float>(*reader, 2, 1), (std::vector<float>{3, 4}));
}

TEST_F(Hdf5ReaderTest, FactorsOfOtherPrograms) {
  const auto factors_error = [](const std::string& name) {
    return error_of<InputError>([&] { open_factors(name, Order::row); });
  };
  {
    const Handle file = create_file("qr.h5");
    add_numbers(file, "q", H5T_IEEE_F64LE, {2, 4, 3});
    add_numbers(file, "r", H5T_IEEE_F32LE, {2, 3, 3});
    add_numbers(file, "something else", H5T_IEEE_F32LE, {2, 3, 3});
  }
  StoredFactors factors = open_factors("qr.h5", Order::row);
  EXPECT_EQ(factors.q->source().m, 4);
  EXPECT_EQ(factors.r->source().type, ElementType::float32);
  EXPECT_FALSE(factors.v || factors.tau || factors.by_qrtool);
  {
    const Handle file = create_file("v.h5");
    add_numbers(file, "V", H5T_IEEE_F64LE, {2, 2, 4, 3});
    add_numbers(file, "tau", H5T_IEEE_F64LE, {2, 2, 3});
  }
  factors = open_factors("v.h5", Order::row);
  EXPECT_FALSE(factors.q || factors.r);
  EXPECT_EQ(factors.tau->source().m, 1);
  EXPECT_EQ(factors.tau->source().n, 3);
  EXPECT_EQ(factors.tau->source().leading, (std::vector<index_t>{2, 2}));
  EXPECT_EQ(read_range<double>(*factors.tau, 1, 2), (std::vector<double>{4, 5, 6, 7, 8, 9}));
  {
    const Handle file = create_file("column.h5");
    add_numbers(file, "V", H5T_IEEE_F64LE, {3, 4});
    add_numbers(file, "tau", H5T_IEEE_F64LE, {3});
  }
  factors = open_factors("column.h5", Order::column);
  EXPECT_EQ(factors.v->source().m, 4);
  EXPECT_EQ(read_all<double>(*factors.tau), (std::vector<double>{1, 2, 3}));
  {
    const Handle file = create_file("wrong.h5");
    add_numbers(file, "Q", H5T_IEEE_F64LE, {2, 4, 3});
    add_numbers(file, "R", H5T_IEEE_F64LE, {2, 4, 3});
  }
  EXPECT_EQ(factors_error("wrong.h5"), "wrong.h5: Q (2x4x3) and R (2x4x3) do not belong together");
  write_numbers("q.h5", "Q", H5T_IEEE_F64LE, {2, 2});
  EXPECT_EQ(factors_error("q.h5"), "q.h5: holds Q, but no R");
  write_numbers("tall.h5", "V", H5T_IEEE_F64LE, {2, 2});
  EXPECT_EQ(factors_error("tall.h5"), "tall.h5: holds V, but no tau");
  write_numbers("none.h5", "A", H5T_IEEE_F64LE, {2, 2});
  EXPECT_EQ(factors_error("none.h5"),
            "none.h5: holds neither R nor V and tau | the datasets must be named /Q and /R (or /R "
            "alone, or /V and /tau)");
  write_numbers("flat.h5", "R", H5T_IEEE_F64LE, {2});
  EXPECT_EQ(factors_error("flat.h5"), "flat.h5: dataset /R has rank 1 (2)");
}

}  // namespace
}  // namespace qrtool::hdf5_reader_test
