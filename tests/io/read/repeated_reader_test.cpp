// SPDX-License-Identifier: Apache-2.0
// repeated_reader_test.cpp: rows that are read twice must be the same numbers.
#include "io/read/repeated_reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/open/input.hpp"
#include "tests/io/file_test.hpp"
#include "tests/io/hdf5/fixture.hpp"

namespace qrtool::repeated_reader_test {
namespace {

class RepeatedReaderTest : public FileTest {
 protected:
  static std::vector<double> rows(Reader& reader, index_t matrix, index_t first) {
    auto values = poisoned<double>(4);
    reader.read_rows(matrix, first, {values.data(), 2, 2, 2});
    return values;
  }
};

TEST_F(RepeatedReaderTest, OnlyTheSameRowsAreCompared) {
  write_text("a.csv", "1,2\n3,4\n5,6\n7,8\n\n1,3\n2,4\n3,5\n4,6\n");
  const auto inner = open_input({.path = "a.csv", .dataset = {}});
  RepeatedReader reader(*inner);
  EXPECT_EQ(reader.source().m, 4);
  for (const index_t matrix : {0, 1}) {
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(rows(reader, matrix, 0).front(), 1);
      EXPECT_EQ(rows(reader, matrix, 2).front(), matrix == 0 ? 5 : 3);
    }
  }
}

/// The times of a file change when a page that is mapped is first written to, and not with the next
/// numbers there.
TEST_F(RepeatedReaderTest, AChangeThatTheTimeDoesNotShow) {
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {4, 2});
  const std::string bytes = read_text("a.h5");
  const double last = 8, other = 9;
  const std::size_t at = bytes.rfind(std::string(reinterpret_cast<const char*>(&last), 8));
  ASSERT_NE(at, std::string::npos);
  const int descriptor = open("a.h5", O_RDWR);
  void* const mapped =
      mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const numbers = static_cast<volatile char*>(mapped) + at;
  numbers[0] = bytes[at];
  const auto inner = open_input({.path = "a.h5", .dataset = {}});
  RepeatedReader reader(*inner);
  rows(reader, 0, 0);
  rows(reader, 0, 2);
  for (std::size_t i = 0; i < sizeof other; ++i)
    numbers[i] = reinterpret_cast<const char*>(&other)[i];
  reader.require_unchanged();
  EXPECT_EQ(rows(reader, 0, 0).front(), 1);
  EXPECT_EQ(error_of<InputError>([&] { rows(reader, 0, 2); }).rfind("a.h5: the file changed", 0),
            0u);
  munmap(mapped, bytes.size());
  close(descriptor);
}

}  // namespace
}  // namespace qrtool::repeated_reader_test
