// SPDX-License-Identifier: Apache-2.0
// hdf5_reader_test.cpp: every layout and type is read right, everything else is refused with words.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <random>

#include "hdf5_fixture.hpp"
#include "io/reader.hpp"
#include "temporary_folder.hpp"

namespace qrtool {
namespace {

class Hdf5ReaderTest : public TemporaryFolder {};

std::unique_ptr<Reader> open_file(const std::string& path, const std::string& dataset = "",
                                  Order order = Order::automatic) {
  return open_input({path, dataset, order});
}

std::string input_error(const std::string& path, const std::string& dataset = "") {
  return error_of<InputError>([&] { open_file(path, dataset); });
}

template <class T>
std::vector<T> read_range(Reader& reader, index_t first, index_t count) {
  const Source& source = reader.source();
  auto values = poisoned<T>(count * source.m * source.n);
  reader.read(first, packed(values.data(), count, source.m, source.n));
  return values;
}

template <class T>
std::vector<T> read_all(Reader& reader) {
  return read_range<T>(reader, 0, reader.source().count());
}

template <class T>
std::vector<T> read_row_range(Reader& reader, index_t matrix, index_t first, index_t rows) {
  const index_t n = reader.source().n;
  auto values = poisoned<T>(rows * n);
  reader.read_rows(matrix, first, {values.data(), rows, n, n});
  return values;
}

/// What a reader of the stored `values` must give for matrix b at (i, j).
template <class T>
T expected(const std::vector<double>& values, const Source& s, index_t b, index_t i, index_t j) {
  const index_t at = s.order == Order::column ? j * s.m + i : i * s.n + j;
  return static_cast<T>(values[static_cast<std::size_t>(b * s.m * s.n + at)]);
}

/// Every range of matrices, and every range of rows of every matrix.
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
  // 3 MiB a matrix: two or three at a time; 12 MiB: cut within the matrix.
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

TEST_F(Hdf5ReaderTest, ChoosingTheDataset) {
  const hdf5::Session session;
  {
    const Handle file = create_file("a.h5");
    add_numbers(file, "A", H5T_IEEE_F64LE, {2, 2});
    add_numbers(file, "labels", H5T_STD_I32LE, {5});
    const Handle group = create_group(file, "g");
    add_numbers(group, "B", H5T_IEEE_F32LE, {2, 3, 4});
  }
  EXPECT_EQ(input_error("a.h5"),
            "a.h5: 2 datasets of matrices: /A (2x2 float64), /g/B (2x3x4 float32) | choose one "
            "with --dataset /A or a.h5:/A");
  EXPECT_EQ(open_file("a.h5:/g/B")->source().dataset, "/g/B");
  EXPECT_EQ(open_file("a.h5:/g/B")->source().file, "a.h5");
  EXPECT_EQ(open_file("a.h5", "g/B")->source().m, 3);
  EXPECT_EQ(open_file("a.h5", "/g/B/")->source().m, 3);
  EXPECT_EQ(input_error("a.h5:/a"), "a.h5: there is no dataset /a; did you mean /A?");
  EXPECT_EQ(input_error("a.h5", "weights"),
            "a.h5: there is no dataset /weights | choose one of /A, /g/B, /labels");
  EXPECT_EQ(input_error("a.h5", "g"),
            "a.h5: /g is a group; it holds /g/B | choose one with --dataset /g/B");
  EXPECT_EQ(input_error("a.h5", "labels"),
            "a.h5: dataset /labels has rank 1 (5); a matrix has two dimensions");
  EXPECT_EQ(error_of<UsageError>([] { open_file("a.h5:/A", "/B"); }),
            "a.h5:/A: a dataset is named here and by --dataset as well");
}

TEST_F(Hdf5ReaderTest, AFileWhoseNameHoldsTheColonWins) {
  std::filesystem::create_directory("a.h5:");
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {2, 2});
  write_numbers("a.h5:/A", "other", H5T_IEEE_F64LE, {3, 3});
  EXPECT_EQ(open_file("a.h5:/A")->source().dataset, "/other");
  std::filesystem::remove("a.h5:/A");
  EXPECT_EQ(open_file("a.h5:/A")->source().dataset, "/A");
  EXPECT_EQ(input_error("b.h5:/A"), "cannot read 'b.h5': No such file or directory");
}

TEST_F(Hdf5ReaderTest, WhatIsNoMatrix) {
  const hdf5::Session session;
  const Handle complex(H5Tcreate(H5T_COMPOUND, 16), H5Tclose);
  H5Tinsert(complex, "r", 0, H5T_IEEE_F64LE);
  H5Tinsert(complex, "i", 8, H5T_IEEE_F64LE);
  const Handle compound(H5Tcreate(H5T_COMPOUND, 16), H5Tclose);
  H5Tinsert(compound, "time", 0, H5T_IEEE_F64LE);
  H5Tinsert(compound, "\x1b]0;x\x07", 8, H5T_IEEE_F64LE);
  const Handle boolean(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  const std::int8_t no = 0, yes = 1;
  H5Tenum_insert(boolean, "FALSE", &no);
  H5Tenum_insert(boolean, "TRUE", &yes);
  const Handle colour(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  H5Tenum_insert(colour, "red", &no);
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  const Handle opaque(H5Tcreate(H5T_OPAQUE, 4), H5Tclose);
  const struct {
    hid_t type;
    const char* what;
  } cases[] = {
      {complex, "is complex (r, i); only real matrices can be read"},
      {compound, "is a compound (time, \\x1b]0;x\\x07); only real matrices can be read"},
      {boolean, "is boolean (FALSE, TRUE); only numbers can be read"},
      {colour, "is an enumeration (red); only numbers can be read"},
      {text, "holds strings; only numbers can be read"},
      {opaque, "holds neither floating-point numbers nor integers"},
  };
  for (const auto& each : cases) {
    {
      const Handle file = create_file("a.h5");
      create_dataset(file, "A", each.type, {2, 2});
    }
    EXPECT_EQ(input_error("a.h5"), std::string("a.h5: dataset /A ") + each.what);
    EXPECT_EQ(input_error("a.h5:/A"), std::string("a.h5: dataset /A ") + each.what);
  }
  {
    const Handle file = create_file("a.h5");
    create_dataset(file, "A", complex, {2, 2});
    const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle b(
        H5Dcreate2(file, "b", H5T_IEEE_F64LE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        H5Dclose);
  }
  EXPECT_EQ(input_error("a.h5"),
            "a.h5: holds no matrices: /A is complex (r, i); only real matrices can be read, /b has "
            "rank 0 (scalar); a matrix has two dimensions");
  create_file("a.h5");
  EXPECT_EQ(input_error("a.h5"), "a.h5: holds no dataset");
}

TEST_F(Hdf5ReaderTest, NamesCannotSteerTheTerminal) {
  write_numbers("a.h5", "\x1b]0;pwned\x07", H5T_IEEE_F64LE, {4});
  EXPECT_EQ(input_error("a.h5"),
            "a.h5: dataset /\\x1b]0;pwned\\x07 has rank 1 (4); a matrix has two dimensions");
}

/// Whether `action` opens the file.
template <class Action>
bool opens(const std::string& file, Action action) {
  const int watch = inotify_init1(IN_NONBLOCK);
  EXPECT_GE(inotify_add_watch(watch, file.c_str(), IN_OPEN | IN_ACCESS), 0);
  action();
  char events[4096];
  const bool opened = read(watch, events, sizeof events) > 0;
  close(watch);
  return opened;
}

/// Files with external links, made before the reader takes this kind of link out of the library.
std::string file_with_external_link(const char* name, const char* target, bool with_soft_link) {
  H5dont_atexit();
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 16, false);
  const hid_t file = H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Lcreate_external("other.h5", target, file, name, H5P_DEFAULT, H5P_DEFAULT);
  if (with_soft_link) H5Lcreate_soft("/g/A", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  std::string bytes(static_cast<std::size_t>(H5Fget_file_image(file, nullptr, 0)), '\0');
  H5Fget_file_image(file, bytes.data(), bytes.size());
  H5Fclose(file);
  H5Pclose(access);
  return bytes;
}
const std::string link_to_dataset = file_with_external_link("A", "/A", false);
const std::string link_to_group = file_with_external_link("g", "/", true);

TEST_F(Hdf5ReaderTest, NothingOutsideTheFileIsRead) {
  const hdf5::Session session;
  write_bytes("secret", std::string(1000, 's'));
  write_numbers("other.h5", "A", H5T_IEEE_F64LE, {4, 4});
  {
    const Handle file = create_file("external.h5");
    const Handle creation = creation_properties();
    H5Pset_external(creation, "secret", 0, 128);
    create_dataset(file, "A", H5T_IEEE_F64LE, {4, 4}, creation);
  }
  {
    const Handle file = create_file("virtual.h5");
    const Handle creation = creation_properties();
    const Dims dims{4, 4};
    const Handle space(H5Screate_simple(2, dims.data(), nullptr), H5Sclose);
    H5Pset_virtual(creation, space, "other.h5", "A", space);
    create_dataset(file, "A", H5T_IEEE_F64LE, dims, creation);
  }
  write_bytes("link.h5", link_to_dataset);
  write_bytes("group.h5", link_to_group);
  const struct {
    const char *file, *dataset, *target, *message;
  } cases[] = {
      {"external.h5", "", "secret",
       "external.h5: dataset /A points outside the file (external storage 'secret'); refused"},
      {"external.h5", "A", "secret",
       "external.h5: dataset /A points outside the file (external storage 'secret'); refused"},
      {"virtual.h5", "", "other.h5",
       "virtual.h5: dataset /A points outside the file (virtual dataset); refused"},
      {"virtual.h5", "A", "other.h5",
       "virtual.h5: dataset /A points outside the file (virtual dataset); refused"},
      {"link.h5", "", "other.h5", "link.h5: /A points outside the file (external link); refused"},
      {"link.h5", "A", "other.h5", "link.h5: /A points outside the file (external link); refused"},
      {"group.h5", "g/A", "other.h5",
       "group.h5: /g points outside the file (external link); refused"},
      {"group.h5", "soft", "other.h5",
       "group.h5: /soft points outside the file (external link); refused"}};
  for (const auto& each : cases) {
    SCOPED_TRACE(std::string(each.file) + " " + each.dataset);
    std::string message;
    EXPECT_FALSE(opens(each.target, [&] { message = input_error(each.file, each.dataset); }));
    EXPECT_EQ(message, each.message);
  }
}

TEST_F(Hdf5ReaderTest, LinksWithinTheFileAreFollowed) {
  const hdf5::Session session;
  {
    const Handle file = create_file("a.h5");
    add_numbers(file, "A", H5T_IEEE_F64LE, {2, 2});
    H5Lcreate_soft("/A", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/loop", file, "loop", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nothing", file, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/", file, "self", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_EQ(open_file("a.h5")->source().dataset, "/A");
  EXPECT_EQ(open_file("a.h5", "soft")->source().m, 2);
  EXPECT_EQ(open_file("a.h5", "self/self/A")->source().m, 2);
  EXPECT_EQ(input_error("a.h5", "dangling"),
            "a.h5: there is no dataset /dangling | choose one of /A");
  EXPECT_EQ(input_error("a.h5", "loop"), "a.h5: /loop cannot be opened (too many links)");
}

TEST_F(Hdf5ReaderTest, SizesThatCannotBe) {
  const hdf5::Session session;
  const auto limit_error = [](const Dims& dims) {
    {
      const Handle file = create_file("a.h5");
      const Handle creation = creation_properties();
      const Dims chunk(dims.size(), 1);
      H5Pset_chunk(creation, static_cast<int>(dims.size()), chunk.data());
      create_dataset(file, "A", H5T_IEEE_F64LE, dims, creation);
    }
    return error_of<LimitError>([] { open_file("a.h5"); });
  };
  const hsize_t large = hsize_t{1} << 40;
  EXPECT_EQ(limit_error({large, large}),
            "a.h5: dataset /A claims 1099511627776x1099511627776 elements, more than can be "
            "addressed");
  EXPECT_EQ(limit_error({large, large, 0}),
            "a.h5: dataset /A claims 1099511627776x1099511627776x0 elements, more than can be "
            "addressed");
  EXPECT_EQ(limit_error({large, 1000}).rfind("a.h5: dataset /A claims 7.8 PiB in a file of 1.", 0),
            0u);
  EXPECT_EQ(limit_error({1 << 15, 1 << 13}).rfind("a.h5: dataset /A claims 2.0 GiB in a file", 0),
            0u);
}

TEST_F(Hdf5ReaderTest, MissingFilter) {
  const hdf5::Session session;
  for (const auto& [filter, name] : {std::pair{32001, "blosc"}, std::pair{32000, "lzf"},
                                     std::pair{31999, "an unknown method"}}) {
    {
      const Handle file = create_file("a.h5");
      const Handle creation = creation_properties();
      const Dims chunk{2, 2};
      H5Pset_chunk(creation, 2, chunk.data());
      H5Pset_filter(creation, filter, H5Z_FLAG_OPTIONAL, 0, nullptr);
      create_dataset(file, "A", H5T_IEEE_F64LE, chunk, creation);
    }
    EXPECT_EQ(input_error("a.h5"),
              std::string("a.h5: dataset /A is compressed with ") + name + " (HDF5 filter " +
                  std::to_string(filter) +
                  "), which is not installed | install that filter's plugin, or where it is "
                  "installed: h5repack -f NONE a.h5 plain.h5");
  }
}

TEST_F(Hdf5ReaderTest, WhatIsNoHdf5File) {
  std::filesystem::create_directory("folder.h5");
  ASSERT_EQ(mkfifo("pipe.h5", 0600), 0);
  write_bytes("empty.h5", "");
  write_bytes("text.h5", "1,2\n3,4\n");
  write_bytes("binary.h5", std::string("\x01\x02\0\x03", 4));
  write_bytes("short.h5", "\x89HDF\r\n\x1a\n");
  write_numbers("hdf5.csv", "A", H5T_IEEE_F64LE, {2, 2});
  EXPECT_EQ(input_error("folder.h5"), "cannot read 'folder.h5': it is a directory");
  EXPECT_EQ(input_error("pipe.h5"), "cannot read 'pipe.h5': it is a pipe, not a file");
  EXPECT_EQ(input_error("/dev/zero"), "cannot read '/dev/zero': it is a device, not a file");
  EXPECT_EQ(input_error("none.h5"), "cannot read 'none.h5': No such file or directory");
  EXPECT_EQ(input_error("empty.h5"), "empty.h5: the file is empty");
  EXPECT_EQ(input_error("text.h5"),
            "text.h5: not an HDF5 file (it looks like text) | for CSV let the name end in .csv, or "
            "use standard input: - < text.h5");
  EXPECT_EQ(input_error("binary.h5"), "binary.h5: not an HDF5 file");
  EXPECT_EQ(input_error("short.h5").rfind("short.h5: damaged HDF5 file (", 0), 0u);
  EXPECT_EQ(input_error("hdf5.csv"),
            "hdf5.csv: an HDF5 file, although its name says text | rename it to end in .h5");
}

TEST_F(Hdf5ReaderTest, OpenForWritingElsewhere) {
  write_numbers("locked.h5", "A", H5T_IEEE_F64LE, {2, 2});
  const int lock = open("locked.h5", O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(input_error("locked.h5"), "locked.h5: it is being written by another program");
  close(lock);
  EXPECT_EQ(open_file("locked.h5")->source().m, 2);

  const pid_t child = fork();
  if (child == 0) {
    // Dies with the file open, as a killed writer does.
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    const Handle file = create_file("killed.h5", H5P_DEFAULT, access);
    const Handle dataset = add_numbers(file, "A", H5T_IEEE_F64LE, {2, 2});
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(input_error("killed.h5"),
            "killed.h5: it is being written by another program, or was not closed | if no program "
            "has it open: h5clear -s killed.h5");
}

TEST_F(Hdf5ReaderTest, Truncated) {
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {30, 10});
  const std::string bytes = read_bytes("a.h5");
  write_bytes("t.h5", bytes.substr(0, 4000));
  EXPECT_EQ(input_error("t.h5"),
            "t.h5: truncated: 4000 of " + std::to_string(bytes.size()) + " bytes");
}

TEST_F(Hdf5ReaderTest, DamageIsNamedByMatrix) {
  const hdf5::Session session;
  const Handle creation = creation_properties();
  const Dims chunk{1, 4, 4};
  H5Pset_chunk(creation, 3, chunk.data());
  H5Pset_fletcher32(creation);
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {20, 4, 4}, creation);
  const std::vector<double> values = small_numbers(20 * 16);
  std::string bytes = read_bytes("a.h5");
  const std::size_t at =
      bytes.find(std::string(reinterpret_cast<const char*>(&values[17 * 16]), 16 * 8));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 3] ^= 1;
  write_bytes("a.h5", bytes);
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
  EXPECT_EQ(factors_error("none.h5"), "none.h5: holds neither R nor V and tau");
  write_numbers("flat.h5", "R", H5T_IEEE_F64LE, {2});
  EXPECT_EQ(factors_error("flat.h5"), "flat.h5: dataset /R has rank 1 (2)");
}

}  // namespace
}  // namespace qrtool
