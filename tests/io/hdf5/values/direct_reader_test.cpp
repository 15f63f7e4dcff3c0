// SPDX-License-Identifier: Apache-2.0
// direct_reader_test.cpp: reading without HDF5 gives the same numbers, and never damaged ones.
#include "io/hdf5/values/direct_reader.hpp"

#include <chrono>
#include <cstring>
#include <future>
#include <memory>

#include "core/error.hpp"
#include "io/checksum/fletcher32.hpp"
#include "tests/io/file_test.hpp"
#include "tests/io/hdf5/fixture.hpp"

namespace qrtool::direct_reader_test {
namespace {

using hdf5::Dims;
using hdf5::DirectReader;

/// The dataset A of a.h5, opened for reading directly.
struct Opened {
  hdf5::InputFile file = hdf5::open_file("a.h5");
  hdf5::Dataset dataset = hdf5::open_dataset(file, "/A");
  std::unique_ptr<DirectReader> reader = DirectReader::open(file, dataset, 2, SIZE_MAX);
};

template <class T>
std::vector<T> numbers_from(index_t first, index_t count) {
  const std::vector<double> all = small_numbers(static_cast<std::size_t>(first + count));
  return {all.begin() + first, all.end()};
}

template <class T>
std::vector<T> read_range(DirectReader& reader, index_t first, index_t count) {
  auto values = poisoned<T>(count);
  EXPECT_TRUE(reader.read(first, count, values.data()));
  return values;
}

Handle chunks(const Dims& chunk, bool with_checksum) {
  Handle creation = creation_properties();
  H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  if (with_checksum) H5Pset_fletcher32(creation);
  return creation;
}

/// A dataset where HDF5 gives 0 for chunks that were never written.
Handle create_checked(hid_t file, const Dims& dims, const Dims& chunk) {
  return create_dataset(file, "A", H5T_IEEE_F32LE, dims, chunks(chunk, true));
}

class Hdf5DirectReaderTest : public FileTest {
 protected:
  /// Reads every range of a dataset of `dims`, which holds 1, 2, ... and whose chunks are
  /// stretches.
  template <class T>
  void expect_every_range(const Dims& dims, hid_t creation) {
    const hid_t type = sizeof(T) == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
    write_numbers("a.h5", "A", type, dims, creation);
    const Opened opened;
    ASSERT_TRUE(opened.reader);
    const auto count = static_cast<index_t>(elements_of(dims));
    for (index_t first = 0; first < count; ++first) {
      for (index_t n = 1; first + n <= count; ++n) {
        ASSERT_EQ(read_range<T>(*opened.reader, first, n), numbers_from<T>(first, n));
        ASSERT_EQ(read_range<double>(*opened.reader, first, n), numbers_from<double>(first, n));
      }
    }
  }
};

TEST_F(Hdf5DirectReaderTest, EveryRangeOfEveryLayout) {
  const Dims dims{2, 7, 3};
  expect_every_range<float>(dims, H5P_DEFAULT);
  expect_every_range<double>(dims, H5P_DEFAULT);
  for (const bool with_checksum : {false, true}) {
    for (const Dims& chunk : {Dims{1, 3, 3}, Dims{1, 7, 3}, Dims{2, 7, 3}, Dims{1, 1, 2}}) {
      expect_every_range<float>(dims, chunks(chunk, with_checksum));
      expect_every_range<double>(dims, chunks(chunk, with_checksum));
    }
  }
}

TEST_F(Hdf5DirectReaderTest, ManyPiecesOnSeveralThreads) {
  // The 3.8 MB are four pieces of contiguous data, or 16 chunks, some of which reach beyond the
  // end.
  const Dims dims{1000, 31, 31};
  for (const bool is_chunked : {false, true}) {
    write_numbers("a.h5", "A", H5T_IEEE_F32LE, dims,
                  is_chunked ? chunks({64, 31, 31}, true) : creation_properties());
    const Opened opened;
    EXPECT_EQ(read_range<float>(*opened.reader, 0, 961000), numbers_from<float>(0, 961000));
    EXPECT_EQ(read_range<double>(*opened.reader, 7, 800000), numbers_from<double>(7, 800000));
  }
}

TEST_F(Hdf5DirectReaderTest, ContiguousDataDoesNotWaitForHdf5) {
  write_numbers("a.h5", "A", H5T_IEEE_F32LE, {600, 1000});
  const Opened opened;
  std::vector<float> values(600000);
  auto busy = std::make_unique<hdf5::Session>();
  auto done =
      std::async(std::launch::async, [&] { return opened.reader->read(0, 600000, values.data()); });
  EXPECT_EQ(done.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  busy.reset();
  EXPECT_TRUE(done.get());
  EXPECT_EQ(values, numbers_from<float>(0, 600000));
}

TEST_F(Hdf5DirectReaderTest, AddressesCountFromTheFilesStart) {
  for (const bool is_chunked : {false, true}) {
    {
      const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
      H5Pset_userblock(creation, 1024);
      const Handle file = create_file("a.h5", creation);
      add_numbers(file, "A", H5T_IEEE_F64LE, {5, 4},
                  is_chunked ? chunks({2, 4}, true) : creation_properties());
    }
    const Opened opened;
    EXPECT_EQ(read_range<double>(*opened.reader, 0, 20), numbers_from<double>(0, 20));
  }
}

TEST_F(Hdf5DirectReaderTest, EverythingElseIsLeftToHdf5) {
  const auto opens = [](hid_t type, const Handle& creation) {
    write_numbers("a.h5", "A", type, {4, 6}, creation);
    return Opened().reader != nullptr;
  };
  EXPECT_TRUE(opens(H5T_IEEE_F32LE, creation_properties()));
  EXPECT_FALSE(opens(H5T_IEEE_F32BE, creation_properties()));
  EXPECT_FALSE(opens(H5T_STD_I32LE, creation_properties()));
  const Handle compact = creation_properties();
  H5Pset_layout(compact, H5D_COMPACT);
  EXPECT_FALSE(opens(H5T_IEEE_F32LE, compact));
  EXPECT_TRUE(opens(H5T_IEEE_F32LE, chunks({2, 6}, true)));
  EXPECT_FALSE(opens(H5T_IEEE_F32LE, chunks({2, 3}, true)));
  const Handle gzip = chunks({2, 6}, false);
  H5Pset_deflate(gzip, 1);
  EXPECT_FALSE(opens(H5T_IEEE_F32LE, gzip));
  H5Pset_fletcher32(gzip);
  EXPECT_FALSE(opens(H5T_IEEE_F32LE, gzip));
  const Handle checksum_first = chunks({2, 6}, true);
  H5Pset_deflate(checksum_first, 1);
  EXPECT_FALSE(opens(H5T_IEEE_F32LE, checksum_first));
  {
    const Handle file = create_file("a.h5");
    create_dataset(file, "A", H5T_IEEE_F32LE, {4, 6});
  }
  EXPECT_FALSE(Opened().reader) << "never written, so it has no place in the file";

  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {4, 6});
  float narrow = 0;
  EXPECT_FALSE(Opened().reader->read(0, 1, &narrow)) << "HDF5 notes numbers that are too large";
}

TEST_F(Hdf5DirectReaderTest, ChunksThatWereNeverWritten) {
  {
    const Handle file = create_file("a.h5");
    const Handle dataset = create_checked(file, {8, 4}, {2, 4});
    std::vector<float> chunk(8, 1);
    const Handle space(H5Dget_space(dataset), H5Sclose),
        memory(H5Screate_simple(2, Dims{2, 4}.data(), nullptr), H5Sclose);
    const Dims start{2, 0}, count{2, 4};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, chunk.data());
  }
  const Opened opened;
  std::vector<float> values(32);
  EXPECT_FALSE(opened.reader->read(0, 32, values.data()));
  EXPECT_FALSE(opened.reader->read(0, 1, values.data()));
  EXPECT_EQ(read_range<float>(*opened.reader, 9, 7), std::vector<float>(7, 1));
}

TEST_F(Hdf5DirectReaderTest, ChunksThatLeftTheirFilterOut) {
  std::vector<float> plain(9, 3);
  const std::uint32_t checksum = fletcher32(reinterpret_cast<std::byte*>(plain.data()), 32);
  std::memcpy(&plain[8], &checksum, 4);
  // The 36 bytes end with a valid checksum, so that only the filter mask shows the difference.
  for (const std::size_t bytes : {32, 36}) {
    {
      const Handle file = create_file("a.h5");
      const Handle dataset = create_checked(file, {2, 4}, {2, 4});
      const Dims offset{0, 0};
      ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 1, offset.data(), bytes, plain.data()), 0);
    }
    float value = 0;
    EXPECT_FALSE(Opened().reader->read(0, 1, &value));
  }
}

TEST_F(Hdf5DirectReaderTest, ChunksOfAnotherSizeThanTheyShouldHave) {
  const std::vector<float> longer(100, 3);
  for (const std::size_t bytes : {16, 32, 100, 400}) {
    {
      const Handle file = create_file("a.h5");
      const Handle dataset = create_checked(file, {2, 4}, {2, 4});
      const Dims offset{0, 0};
      ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), bytes, longer.data()), 0);
    }
    float value = 0;
    EXPECT_FALSE(Opened().reader->read(0, 1, &value)) << bytes;
  }
}

TEST_F(Hdf5DirectReaderTest, AFlippedBitInAChunkOrItsChecksum) {
  write_numbers("a.h5", "A", H5T_IEEE_F32LE, {6, 4}, chunks({2, 4}, true));
  const std::string bytes = read_text("a.h5");
  const auto chunk = numbers_from<float>(8, 8);
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(chunk.data()), 32));
  ASSERT_NE(at, std::string::npos);
  for (std::size_t i = 0; i < 36; ++i) {
    std::string damaged = bytes;
    damaged[at + i] = static_cast<char>(damaged[at + i] ^ (1 << i % 8));
    write_text("a.h5", damaged);
    const Opened opened;
    std::vector<float> values(24);
    EXPECT_FALSE(opened.reader->read(0, 24, values.data())) << i;
    EXPECT_FALSE(opened.reader->read(9, 1, values.data())) << i;
    EXPECT_EQ(read_range<float>(*opened.reader, 0, 8), numbers_from<float>(0, 8));
    EXPECT_EQ(read_range<float>(*opened.reader, 17, 3), numbers_from<float>(17, 3));
  }
}

TEST_F(Hdf5DirectReaderTest, AFileThatBecomesShorterWhileItIsRead) {
  for (const bool is_chunked : {false, true}) {
    write_numbers("a.h5", "A", H5T_IEEE_F32LE, {6, 400},
                  is_chunked ? chunks({2, 400}, true) : creation_properties());
    const Opened opened;
    const auto size = std::filesystem::file_size("a.h5");
    std::filesystem::resize_file("a.h5", size / 2);
    std::vector<double> values(2400);
    EXPECT_EQ(
        error_of<InputError>([&] { opened.reader->read(0, 2400, values.data()); }),
        "a.h5: truncated: " + std::to_string(size / 2) + " of " + std::to_string(size) + " bytes");
  }
}

}  // namespace
}  // namespace qrtool::direct_reader_test
