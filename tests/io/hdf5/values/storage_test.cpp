// SPDX-License-Identifier: Apache-2.0
// storage_test.cpp: a file that stores something else than its type and dimensions ask for is
// refused, where HDF5 gives what was in the memory before.
#include "io/hdf5/values/storage.hpp"

#include <zlib.h>

#include "tests/io/hdf5/reading.hpp"

namespace qrtool::storage_test {
namespace {

using hdf5::Dims;

template <class Number>
std::string bytes_of(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(std::data(numbers)), numbers.size() * sizeof(Number)};
}

/// Replaces the only place in a file that has these bytes.
void replace_bytes(const std::string& file, const std::string& before, const std::string& after) {
  std::string bytes = read_text(file);
  const std::size_t at = bytes.find(before);
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(bytes.find(before, at + 1), std::string::npos);
  ASSERT_EQ(before.size(), after.size());
  write_text(file, bytes.replace(at, before.size(), after));
}

/// Returns how HDF5 describes IEEE float32, from the class to the bias of the exponent.
std::string float_type(std::uint32_t bytes, std::uint16_t offset, std::uint16_t precision,
                       char exponent_bits = 8, std::uint32_t bias = 127) {
  return std::string("\x11\x20\x1f\0", 4) + bytes_of<std::uint32_t>({bytes}) +
         bytes_of<std::uint16_t>({offset, precision}) + std::string{23, exponent_bits, 0, 23} +
         bytes_of<std::uint32_t>({bias});
}

class Hdf5StorageTest : public FileTest {
 protected:
  /// Opens a.h5 and reads all of it. Returns the error.
  static std::string error_of_reading() {
    return error_of<InputError>([] {
      const auto reader = open_file("a.h5", "/A");
      read_all<double>(*reader);
    });
  }
  static void expect_damaged(const std::string& cause) {
    EXPECT_EQ(error_of_reading(), "a.h5: dataset /A is damaged (" + cause + ")");
  }
  static void expect_damaged_chunk(const std::string& cause) {
    expect_damaged(cause + ", in the chunk at (0, 0, 0)");
  }
  /// Creates a dataset of 5 matrices of 6 x 4 float32 in chunks of 2, which `set_filters` may
  /// filter, and writes the chunks in the way of a broken program: each has the same `bytes`.
  template <class SetFilters>
  static void write_chunks(SetFilters set_filters, const std::string& bytes,
                           std::uint32_t left_out = 0, hid_t type = H5T_IEEE_F32LE) {
    const hdf5::Session session;
    const Handle file = create_file("a.h5"), creation = creation_properties();
    H5Pset_chunk(creation, 3, Dims{2, 6, 4}.data());
    set_filters(creation);
    const Handle dataset = create_dataset(file, "A", type, {5, 6, 4}, creation);
    for (const hsize_t first : {0, 2, 4}) {
      EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, left_out, Dims{first, 0, 0}.data(),
                               bytes.size(), bytes.data()),
                0);
    }
  }
  static std::string compressed(std::size_t bytes) {
    const std::string text(bytes, '\0');
    uLongf size = compressBound(bytes);
    std::string result(size, '\0');
    compress(reinterpret_cast<Bytef*>(result.data()), &size,
             reinterpret_cast<const Bytef*>(text.data()), bytes);
    return result.substr(0, size);
  }
};

constexpr std::size_t chunk_bytes = 2 * 6 * 4 * 4;
constexpr auto plain = [](hid_t) {};
constexpr auto checked = [](hid_t creation) { H5Pset_fletcher32(creation); };
constexpr auto shuffled = [](hid_t creation) { H5Pset_shuffle(creation); };
constexpr auto gzip = [](hid_t creation) {
  H5Pset_shuffle(creation);
  H5Pset_deflate(creation, 6);
};

TEST_F(Hdf5StorageTest, DimensionsBeyondContiguousData) {
  {
    const Handle file = create_file("a.h5");
    add_numbers(file, "A", H5T_IEEE_F32LE, {5, 6, 4});
    add_numbers(file, "B", H5T_IEEE_F32LE, {50, 7, 7});
  }
  EXPECT_EQ(error_of_reading(), "no error");
  replace_bytes("a.h5", bytes_of<hsize_t>({5, 6, 4, 5, 6, 4}),
                bytes_of<hsize_t>({7, 6, 4, 7, 6, 4}));
  expect_damaged("480 bytes are stored where 7x6x4 need 672");
}

TEST_F(Hdf5StorageTest, CompactDataOfAnotherSize) {
  const Handle creation = creation_properties();
  H5Pset_layout(creation, H5D_COMPACT);
  write_numbers("a.h5", "A", H5T_IEEE_F32LE, {5, 6, 4}, creation);
  EXPECT_EQ(error_of_reading(), "no error");
  replace_bytes("a.h5", bytes_of<hsize_t>({5, 6, 4, 5, 6, 4}),
                bytes_of<hsize_t>({9, 6, 4, 9, 6, 4}));
  EXPECT_EQ(error_of_reading().rfind("a.h5: ", 0), 0u);
}

TEST_F(Hdf5StorageTest, TypesThatNoProgramWrites) {
  const std::string good = float_type(4, 0, 32);
  for (const std::string& bad :
       {float_type(0, 0, 32), float_type(3, 0, 32), float_type(4, 8, 32), float_type(4, 0, 64),
        float_type(4, 0, 32, 9), float_type(4, 0, 32, 8, 191), float_type(4096, 0, 32)}) {
    write_numbers("a.h5", "A", H5T_IEEE_F32LE, {5, 6, 4});
    EXPECT_EQ(error_of_reading(), "no error");
    replace_bytes("a.h5", good, bad);
    const std::string error = error_of_reading();
    EXPECT_EQ(error.rfind("a.h5: ", 0), 0u) << error << testing::PrintToString(bad);
  }
}

TEST_F(Hdf5StorageTest, TypesOfProcessorsAreSound) {
  for (const hid_t type : {H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_NATIVE_LDOUBLE, H5T_STD_I8LE,
                           H5T_STD_U16BE, H5T_STD_I64LE}) {
    write_numbers("a.h5", "A", type, {5, 6, 4});
    EXPECT_EQ(error_of_reading(), "no error");
  }
}

TEST_F(Hdf5StorageTest, ChunksThatHaveNoElementsOrMoreThanFit) {
  for (const std::uint32_t extent : {0u, 7u, 0xffffffffu}) {
    write_chunks(plain, std::string(chunk_bytes, '\0'));
    EXPECT_EQ(error_of_reading(), "no error");
    replace_bytes("a.h5", bytes_of<std::uint32_t>({2, 6, 4, 4}),
                  bytes_of<std::uint32_t>({extent, 6, 4, 4}));
    const std::string error = error_of_reading();
    EXPECT_EQ(error.rfind("a.h5: ", 0), 0u) << extent << error;
  }
}

TEST_F(Hdf5StorageTest, StoredChunksOfAnotherSize) {
  for (const std::size_t bytes : {chunk_bytes - 4, chunk_bytes + 4}) {
    for (const hid_t type : {H5T_IEEE_F32LE, H5T_IEEE_F32BE}) {
      write_chunks(shuffled, std::string(bytes, '\0'), 0, type);
      expect_damaged_chunk(std::to_string(bytes) + " bytes where 192 are needed");
      // The checksum of zeros is zero.
      write_chunks(checked, std::string(bytes + 4, '\0'), 0, type);
      expect_damaged_chunk(std::to_string(bytes + 4) + " bytes where 196 are needed");
    }
  }
  write_chunks(checked, std::string(chunk_bytes + 4, '\0'));
  EXPECT_EQ(error_of_reading(), "no error");
  write_chunks(checked, std::string(chunk_bytes, '\0'), 1);
  expect_damaged_chunk("its checksum is missing");
}

TEST_F(Hdf5StorageTest, ChunksThatDecompressToAnotherSize) {
  write_chunks(gzip, compressed(chunk_bytes));
  EXPECT_EQ(error_of_reading(), "no error");
  write_chunks(gzip, compressed(chunk_bytes - 4));
  expect_damaged_chunk("188 bytes where 192 are needed");
  write_chunks(gzip, compressed(1));
  expect_damaged_chunk("1 bytes where 192 are needed");
  write_chunks(gzip, compressed(chunk_bytes + 4));
  expect_damaged_chunk("it cannot be decompressed");
  write_chunks(gzip, "no gzip");
  expect_damaged_chunk("it cannot be decompressed");
  // The second filter was left out.
  write_chunks(gzip, std::string(chunk_bytes, '\0'), 2);
  EXPECT_EQ(error_of_reading(), "no error");
  write_chunks(gzip, std::string(100, '\0'), 2);
  expect_damaged_chunk("100 bytes where 192 are needed");
}

TEST_F(Hdf5StorageTest, FiltersThatStateTheirSizes) {
  const Handle creation = creation_properties();
  H5Pset_chunk(creation, 3, Dims{2, 6, 4}.data());
  H5Pset_scaleoffset(creation, H5Z_SO_INT, 0);
  write_numbers("a.h5", "A", H5T_STD_I32LE, {5, 6, 4}, creation);
  EXPECT_EQ(error_of_reading(), "no error");
  // The parameters begin with the kind of scaling, its factor and the elements of a chunk.
  replace_bytes("a.h5", bytes_of<std::uint32_t>({2, 0, 48, 0}),
                bytes_of<std::uint32_t>({2, 0, 40, 0}));
  expect_damaged_chunk("160 bytes where 192 are needed");
}

TEST_F(Hdf5StorageTest, PartialChunksMayBeUnfiltered) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose), creation = creation_properties();
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_chunk(creation, 3, Dims{2, 6, 4}.data());
  H5Pset_chunk_opts(creation, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  H5Pset_deflate(creation, 6);
  {
    const Handle file = create_file("a.h5", H5P_DEFAULT, access);
    add_numbers(file, "A", H5T_IEEE_F64LE, {5, 6, 4}, creation);
  }
  EXPECT_EQ(read_all<double>(*open_file("a.h5")), small_numbers(120));
}

TEST_F(Hdf5StorageTest, ElementsThatWereNeverWritten) {
  for (const bool is_chunked : {false, true}) {
    for (const H5D_fill_time_t time : {H5D_FILL_TIME_NEVER, H5D_FILL_TIME_ALLOC}) {
      const Handle file = create_file("a.h5"), creation = creation_properties();
      if (is_chunked) H5Pset_chunk(creation, 3, Dims{2, 6, 4}.data());
      H5Pset_fill_time(creation, time);
      create_dataset(file, "A", H5T_IEEE_F32LE, {5, 6, 4}, creation);
      H5Fflush(file, H5F_SCOPE_GLOBAL);
      write_text("copy.h5", read_text("a.h5"));
      const std::string error = error_of<InputError>([] {
        const auto reader = open_file("copy.h5");
        EXPECT_EQ(read_all<double>(*reader), std::vector<double>(120, 0.0)) << "the fill value";
      });
      EXPECT_EQ(error, time == H5D_FILL_TIME_ALLOC
                           ? "no error"
                           : "copy.h5: dataset /A has elements that were never written");
    }
  }
}

TEST_F(Hdf5StorageTest, AGroupThatCannotBeReadIsNotEmpty) {
  write_numbers("a.h5", "A", H5T_IEEE_F32LE, {5, 6, 4});
  // Groups of the old format have one heap for the names of their links.
  replace_bytes("a.h5", "HEAP", "HEAQ");
  const std::string error = input_error("a.h5", "/A");
  EXPECT_EQ(error.rfind("a.h5: damaged HDF5 file", 0), 0u) << error;
}

TEST_F(Hdf5StorageTest, AnInputThatChangedIsNoticed) {
  write_numbers("a.h5", "A", H5T_IEEE_F32LE, {5, 6, 4});
  write_text("a.csv", "1,2\n3,4\n");
  for (const std::string name : {"a.h5", "a.csv"}) {
    const auto reader = open_file(name);
    read_all<double>(*reader);
    reader->require_unchanged();
    std::filesystem::last_write_time(
        name, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
    EXPECT_EQ(error_of<InputError>([&] { reader->require_unchanged(); }),
              name +
                  ": the file changed while it was being read | wait until the program that "
                  "writes it is done, or read a copy");
  }
}

}  // namespace
}  // namespace qrtool::storage_test
