// SPDX-License-Identifier: Apache-2.0
// unpacker_test.cpp: compressed chunks of every cut and type give their numbers, and each chunk is
// decompressed once, and not by HDF5 again.
#include "io/hdf5/values/unpacker.hpp"

#include <dlfcn.h>
#include <libdeflate.h>
#include <zlib.h>

#include <atomic>
#include <cstring>

#include "io/open/input.hpp"
#include "tests/io/hdf5/reading.hpp"

namespace {

std::atomic<int> decompressed = 0;  // chunks, by whomever

}  // namespace

extern "C" libdeflate_result libdeflate_zlib_decompress(libdeflate_decompressor* decompressor,
                                                        const void* from, std::size_t from_bytes,
                                                        void* to, std::size_t to_bytes,
                                                        std::size_t* bytes) {
  ++decompressed;
  return reinterpret_cast<decltype(&libdeflate_zlib_decompress)>(
      dlsym(RTLD_NEXT, "libdeflate_zlib_decompress"))(decompressor, from, from_bytes, to, to_bytes,
                                                      bytes);
}

/// HDF5's filter begins with this.
extern "C" int inflateInit_(z_streamp stream, const char* version, int size) {
  using Function = int(z_streamp, const char*, int);
  ++decompressed;
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "inflateInit_"))(stream, version, size);
}

namespace qrtool::unpacker_test {
namespace {

using hdf5::Dims;

constexpr H5Z_filter_t lzf = 32000;

class Hdf5UnpackerTest : public FileTest {};

/// Returns the matrices with their rows and columns exchanged.
template <class T>
std::vector<T> exchanged(const std::vector<T>& values, index_t m, index_t n) {
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<index_t>(i), b = at / (m * n), row = at / n % m, col = at % n;
    result[static_cast<std::size_t>(b * m * n + col * m + row)] = values[i];
  }
  return result;
}

template <class T>
void expect_small_numbers(const Dims& dims) {
  const std::vector<double> numbers = small_numbers(elements_of(dims));
  const std::vector<T> all(numbers.begin(), numbers.end());
  const auto m = static_cast<index_t>(dims[1]), n = static_cast<index_t>(dims[2]);
  const auto reader = open_file("a.h5");
  EXPECT_EQ(read_all<T>(*reader), all);
  for (index_t b = 0; b < std::ssize(all) / (m * n); ++b) {
    const std::vector<T> matrix(all.begin() + b * m * n, all.begin() + (b + 1) * m * n);
    EXPECT_EQ(read_range<T>(*reader, b, 1), matrix);
    for (index_t row = 0; row < m; row += 2) {
      const index_t rows = std::min<index_t>(2, m - row);
      EXPECT_EQ(read_row_range<T>(*reader, b, row, rows),
                std::vector<T>(matrix.begin() + row * n, matrix.begin() + (row + rows) * n));
    }
  }
  const auto by_columns = open_file("a.h5", "", Order::column);
  EXPECT_EQ(read_all<T>(*by_columns), exchanged(all, m, n));
}

TEST_F(Hdf5UnpackerTest, EveryCutAndEveryType) {
  const hdf5::Session session;
  const Dims dims{5, 6, 4};
  for (const Dims& chunk :
       {Dims{2, 6, 4}, Dims{3, 4, 3}, Dims{1, 1, 1}, Dims{5, 6, 4}, Dims{1, 5, 4}, Dims{4, 6, 2}}) {
    for (const hid_t type : {H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_IEEE_F64BE,
                             H5T_STD_I16LE, H5T_STD_U8LE, H5T_STD_I64BE, H5T_NATIVE_LDOUBLE}) {
      for (int filters = 1; filters < 8; ++filters) {
        const Handle creation = creation_properties();
        H5Pset_chunk(creation, 3, chunk.data());
        if (filters & 1) H5Pset_shuffle(creation);
        if (filters & 2) H5Pset_deflate(creation, 1);
        if (filters & 4) H5Pset_fletcher32(creation);
        write_numbers("a.h5", "A", type, dims, creation);
        expect_small_numbers<double>(dims);
        expect_small_numbers<float>(dims);
      }
    }
  }
}

TEST_F(Hdf5UnpackerTest, ChunksOfSeveralCallsAreDecompressedOnce) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  H5Pset_chunk(creation, 3, Dims{3, 4, 3}.data());
  H5Pset_deflate(creation, 1);
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {5, 6, 4}, creation);
  for (const Order order : {Order::row, Order::column}) {
    const auto reader = open_file("a.h5", "", order);
    decompressed = 0;
    for (index_t b = 0; b < 5; ++b) {
      for (index_t row = 0; row < reader->source().m; ++row) {
        read_row_range<double>(*reader, b, row, 1);
      }
    }
    EXPECT_EQ(decompressed, 2 * 2 * 2);
  }
}

/// A chunk that is larger than the memory for chunks stays where a thread has unpacked it.
TEST_F(Hdf5UnpackerTest, LargeChunksAreDecompressedOnceInLittleMemory) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  const Dims dims{2, 700, 500};
  H5Pset_chunk(creation, 3, Dims{1, 350, 500}.data());  // 1.4 MB
  H5Pset_deflate(creation, 1);
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, dims, creation);
  const std::vector<double> numbers = small_numbers(elements_of(dims));
  for (const int threads : {1, 2}) {
    const auto reader =
        open_input({.path = "a.h5", .dataset = {}, .threads = threads, .memory_bytes = 4 << 20});
    decompressed = 0;
    std::vector<double> read;
    for (index_t b = 0; b < 2; ++b)
      for (index_t row = 0; row < 700; row += 100) {  // a range in two chunks each time round
        const std::vector<double> rows = read_row_range<double>(*reader, b, row, 100);
        read.insert(read.end(), rows.begin(), rows.end());
      }
    EXPECT_EQ(read, numbers);
    EXPECT_EQ(decompressed, 4) << threads << " threads";
  }
}

TEST_F(Hdf5UnpackerTest, ManyNumbersThatAreWiderThanAskedFor) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  const Dims dims{3, 700, 1000};  // 16.8 MB
  H5Pset_chunk(creation, 3, Dims{1, 99, 1000}.data());
  H5Pset_deflate(creation, 1);
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, dims, creation);
  const std::vector<double> numbers = small_numbers(elements_of(dims));
  EXPECT_EQ(read_all<float>(*open_file("a.h5")),
            std::vector<float>(numbers.begin(), numbers.end()));
}

TEST_F(Hdf5UnpackerTest, ChunksThatWereNeverWrittenHaveTheFillValue) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  H5Pset_chunk(creation, 3, Dims{2, 6, 4}.data());
  H5Pset_deflate(creation, 1);
  const double fill = 7;
  H5Pset_fill_value(creation, H5T_NATIVE_DOUBLE, &fill);
  {
    const Handle file = create_file("a.h5");
    create_dataset(file, "A", H5T_IEEE_F32BE, {5, 6, 4}, creation);
  }
  EXPECT_EQ(read_all<double>(*open_file("a.h5")), std::vector<double>(120, 7));
}

TEST_F(Hdf5UnpackerTest, AChangedChunkDoesNotMatchItsChecksum) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  H5Pset_chunk(creation, 3, Dims{5, 6, 4}.data());
  H5Pset_shuffle(creation);
  H5Pset_fletcher32(creation);
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {5, 6, 4}, creation);
  std::string bytes = read_text("a.h5");
  bytes[bytes.size() - 300] ^= 1;
  write_text("a.h5", bytes);
  EXPECT_EQ(error_of<InputError>([] { read_all<double>(*open_file("a.h5")); }),
            "a.h5: dataset /A is damaged (checksum mismatch, in the chunk at (0, 0, 0))");
}

TEST_F(Hdf5UnpackerTest, NumbersTooLargeForSingle) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  H5Pset_chunk(creation, 3, Dims{1, 1, 2}.data());
  H5Pset_deflate(creation, 1);
  {
    const Handle file = create_file("a.h5");
    const Handle dataset = create_dataset(file, "A", H5T_IEEE_F64LE, {2, 1, 2}, creation);
    const double values[] = {1, 2, -1e300, 3};
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  }
  EXPECT_EQ(error_of<InputError>([] { read_all<float>(*open_file("a.h5")); }),
            "a.h5: dataset /A holds a number at matrix 1 that is too large for float32 | use "
            "--precision double");
}

/// Writes the bytes as the only chunk of 4 x 4 float32.
void write_chunk(H5Z_filter_t filter, const std::vector<unsigned>& parameters,
                 const std::string& bytes) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  H5Pset_chunk(creation, 2, Dims{4, 4}.data());
  H5Pset_filter(creation, filter, H5Z_FLAG_OPTIONAL, parameters.size(), parameters.data());
  const Handle file = create_file("a.h5");
  const Handle dataset = create_dataset(file, "A", H5T_IEEE_F32LE, {4, 4}, creation);
  EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, Dims{0, 0}.data(), bytes.size(), bytes.data()),
            0);
}

TEST_F(Hdf5UnpackerTest, ParametersThatHdf5Refuses) {
  const std::string plain(64, '\0');
  std::string zeros(100, '\0');
  uLongf bytes = zeros.size();
  compress(reinterpret_cast<Bytef*>(zeros.data()), &bytes,
           reinterpret_cast<const Bytef*>(plain.data()), plain.size());
  zeros.resize(bytes);
  for (const unsigned level : {0u, 9u, 10u}) {
    write_chunk(H5Z_FILTER_DEFLATE, {level}, zeros);
    EXPECT_EQ(error_of<InputError>([] { read_all<float>(*open_file("a.h5")); }) == "no error",
              level <= 9);
  }
  write_chunk(H5Z_FILTER_DEFLATE, {1, 1}, zeros);
  EXPECT_NE(error_of<InputError>([] { read_all<float>(*open_file("a.h5")); }), "no error");
}

TEST_F(Hdf5UnpackerTest, PluginsMakeWholeChunks) {
  constexpr H5Z_filter_t same_bytes = 300;
  const hdf5::Session session;
  H5PLprepend(QRTOOL_PLUGINS);
  const std::string damaged = "a.h5: dataset /A is damaged (", chunk = ", in the chunk at (0, 0))";
  const std::pair<std::string, std::string> cases[] = {
      {std::string(64, '\0'), "no error"},
      {std::string(60, '\0'), damaged + "60 bytes where 64 are needed" + chunk},
      {std::string(68, '\0'), damaged + "68 bytes where 64 are needed" + chunk},
      {std::string(64, '\xff'), damaged + "it cannot be decompressed" + chunk}};
  for (const auto& [stored, error] : cases) {
    write_chunk(same_bytes, {}, stored);
    EXPECT_EQ(error_of<InputError>([] {
                EXPECT_EQ(read_all<float>(*open_file("a.h5")), std::vector<float>(16, 0));
              }),
              error);
  }
}

/// As h5py's filter does, which the library does not have.
void write_lzf(const std::string& bytes) { write_chunk(lzf, {4, 0x105, 64}, bytes); }

TEST_F(Hdf5UnpackerTest, LzfIsReadWithoutAPlugin) {
  // Four bytes as they are, and then 60 bytes that repeat those of four bytes before: a length of 7
  // and 51, and two more.
  const std::string whole{3, 0, 0, '\x80', '?', '\xe0', 51, 3};
  write_lzf(whole);
  EXPECT_EQ(read_all<float>(*open_file("a.h5")), std::vector<float>(16, 1));
  // The short lengths are 3 + 2 bytes.
  std::string bytes{3, 0, 0, '\x80', '?'};
  for (int i = 0; i < 12; ++i) bytes += {'\x60', 3};
  write_lzf(bytes);
  EXPECT_EQ(read_all<float>(*open_file("a.h5")), std::vector<float>(16, 1));

  const std::string damaged = "a.h5: dataset /A is damaged (", chunk = ", in the chunk at (0, 0))";
  const std::pair<std::string, std::string> cases[] = {
      {whole.substr(0, 5), "4 bytes where 64 are needed"},
      {whole.substr(0, 4), "it cannot be decompressed"},                     // cut off
      {whole.substr(0, 7), "it cannot be decompressed"},                     // the same
      {{3, 0, 0, '\x80', '?', '\xe0', 52, 3}, "it cannot be decompressed"},  // 65 bytes
      {{3, 0, 0, '\x80', '?', '\xe0', 51, 4}, "it cannot be decompressed"},  // before the beginning
      {{3, 0, 0, '\x80', '?', '\xe0', 50, 3}, "63 bytes where 64 are needed"}};
  for (const auto& [stored, cause] : cases) {
    write_lzf(stored);
    EXPECT_EQ(error_of<InputError>([] { read_all<double>(*open_file("a.h5")); }),
              damaged + cause + chunk);
  }
}

}  // namespace
}  // namespace qrtool::unpacker_test
