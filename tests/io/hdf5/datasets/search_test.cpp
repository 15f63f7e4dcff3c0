// SPDX-License-Identifier: Apache-2.0
// search_test.cpp: the intended dataset is found, and nothing outside the file is opened.
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tests/io/hdf5/reading.hpp"

namespace qrtool::search_test {
namespace {

using hdf5::Dims;

class Hdf5SearchTest : public FileTest {};

const std::string hint_of_vector =
    " | store it so, by a.reshape(-1, 1) or a.reshape(1, -1) in NumPy; solve takes vectors as the "
    "columns of A by --a NAME";

TEST_F(Hdf5SearchTest, ChoosingTheDataset) {
  const hdf5::Session session;
  {
    const Handle file = create_file("a.h5");
    add_numbers(file, "A", H5T_IEEE_F64LE, {2, 2});
    add_numbers(file, "labels", H5T_STD_I32LE, {5});
    const Handle group = create_group(file, "g");
    add_numbers(group, "B", H5T_IEEE_F32LE, {2, 3, 4});
  }
  EXPECT_EQ(input_error("a.h5"),
            "a.h5: 2 datasets of matrices: /A (2x2 float64), /g/B (2x3x4 float32) | choose one, "
            "as in a.h5:/A");
  EXPECT_EQ(open_file("a.h5:/g/B")->source().dataset, "/g/B");
  EXPECT_EQ(open_file("a.h5:/g/B")->source().file, "a.h5");
  EXPECT_EQ(open_file("a.h5", "g/B")->source().m, 3);
  EXPECT_EQ(open_file("a.h5", "/g/B/")->source().m, 3);
  EXPECT_EQ(input_error("a.h5:/a"), "a.h5: there is no dataset /a; did you mean /A?");
  EXPECT_EQ(input_error("a.h5", "weights"),
            "a.h5: there is no dataset /weights | choose one of /A, /g/B, /labels");
  EXPECT_EQ(input_error("a.h5", "g"),
            "a.h5: /g is a group; it holds /g/B | choose one, as in a.h5:/g/B");
  EXPECT_EQ(input_error("a.h5", "labels"),
            "a.h5: dataset /labels has rank 1 (5); a matrix has two dimensions, 5x1 or 1x5" +
                hint_of_vector);
  EXPECT_EQ(error_of<UsageError>([] { open_file("a.h5:/A", "/B"); }),
            "a.h5:/A: a dataset is named here and by --dataset as well");
}

void add_number_attribute(hid_t object, const std::string& name, hid_t type, double value) {
  const Handle space(valid(H5Screate(H5S_SCALAR)), H5Sclose);
  const Handle attribute(
      valid(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT)), H5Aclose);
  EXPECT_GE(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value), 0);
}

/// netCDF-4 is HDF5: what it calls missing is NaN, and its coordinates are no matrices.
TEST_F(Hdf5SearchTest, NetCdf) {
  {
    const hdf5::Session session;
    const Handle file = create_file("a.nc");
    const Handle scale = add_numbers(file, "bounds", H5T_IEEE_F64LE, {3, 2});
    add_string_attribute(scale, "CLASS", "DIMENSION_SCALE");
    const Handle data = add_numbers(file, "t", H5T_IEEE_F32LE, {2, 3, 2});
    add_number_attribute(data, "_FillValue", H5T_IEEE_F32LE, 3);
    add_number_attribute(data, "missing_value", H5T_STD_I16LE, 5);
    const Handle group = create_group(file, "g");
    const Handle packed = add_numbers(group, "p", H5T_STD_I16BE, {4, 3});
    add_number_attribute(packed, "missing_value", H5T_STD_I16BE, 3);
    add_number_attribute(packed, "add_offset", H5T_IEEE_F64LE, 0.5);
  }
  EXPECT_EQ(input_error("a.nc"),
            "a.nc: 2 datasets of matrices: /g/p (4x3 big-endian int16), /t (2x3x2 float32) | "
            "choose one, as in a.nc:/g/p");
  const auto expect_missing = [](const std::string& path, const std::vector<double>& missing,
                                 double offset = 0) {
    const auto reader = open_file(path);
    const Source& source = reader->source();
    const std::vector<double> plain =
        small_numbers(static_cast<std::size_t>(source.count() * source.m * source.n));
    const auto check = [&](double found, std::size_t at) {
      const bool is_missing = std::find(missing.begin(), missing.end(), plain[at]) != missing.end();
      EXPECT_TRUE(is_missing ? std::isnan(found) : found == plain[at] + offset)
          << path << " " << at;
    };
    const std::vector<double> all = read_all<double>(*reader);
    const std::vector<float> floats = read_all<float>(*reader);
    auto row = poisoned<double>(source.n);
    reader->read_rows(0, 1, {row.data(), 1, source.n, source.n});
    for (std::size_t at = 0; at < plain.size(); ++at) {
      check(all[at], at);
      check(static_cast<double>(floats[at]), at);
    }
    for (std::size_t j = 0; j < row.size(); ++j) check(row[j], row.size() + j);
  };
  expect_missing("a.nc:/t", {3, 5});
  expect_missing("a.nc:/g/p", {3}, 0.5);
  EXPECT_EQ(open_file("a.nc:/t")->source().details, (TextPairs{{"netcdf_missing_value", "3 5"}}));
  EXPECT_EQ(open_file("a.nc:/g/p")->source().details,
            (TextPairs{{"netcdf_missing_value", "3"}, {"netcdf_add_offset", "0.5"}}));
  EXPECT_EQ(open_file("a.nc:/bounds")->source().m, 3);
}

TEST_F(Hdf5SearchTest, ForeignFormats) {
  const std::pair<const char*, const char*> cases[] = {
      {"MATLAB 5.0 MAT-file, Platform: GLNXA64",
       "a.mat: a MAT-file of version 5 to 7; it cannot be read | write it again: in MATLAB by save "
       "-v7.3, in Octave by save -hdf5"},
      {"CDF\x01",
       "a.mat: a netCDF-3 file; it cannot be read | convert it: nccopy -k nc4 a.mat new.nc"},
      {"CDF\x05",
       "a.mat: a netCDF-3 file; it cannot be read | convert it: nccopy -k nc4 a.mat new.nc"}};
  for (const auto& [head, message] : cases) {
    write_text("a.mat", std::string(head) + std::string(200, '\0'));
    EXPECT_EQ(input_error("a.mat"), message);
  }
}

TEST_F(Hdf5SearchTest, AFileWhoseNameHoldsTheColonWins) {
  std::filesystem::create_directory("a.h5:");
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {2, 2});
  write_numbers("a.h5:/A", "other", H5T_IEEE_F64LE, {3, 3});
  EXPECT_EQ(open_file("a.h5:/A")->source().dataset, "/other");
  std::filesystem::remove("a.h5:/A");
  EXPECT_EQ(open_file("a.h5:/A")->source().dataset, "/A");
  EXPECT_EQ(input_error("b.h5:/A"), "cannot read 'b.h5': No such file or directory");
}

TEST_F(Hdf5SearchTest, NamesCannotSteerTheTerminal) {
  write_numbers("a.h5", "\x1b]0;pwned\x07", H5T_IEEE_F64LE, {4});
  EXPECT_EQ(
      input_error("a.h5"),
      "a.h5: dataset /\\x1b]0;pwned\\x07 has rank 1 (4); a matrix has two dimensions, 4x1 or 1x4" +
          hint_of_vector);
}

/// Writes /A and /g/A, and then `value` over a number of the local heap of / (0) or /g (1), `at`
/// bytes from where the heap begins. Returns the error of opening `path`.
std::string error_of_heap(int heap, std::size_t at, std::uint64_t value, const std::string& path) {
  {
    const Handle file = create_file("a.h5");
    add_numbers(file, "A", H5T_IEEE_F64LE, {2, 2});
    const Handle group = create_group(file, "g");
    add_numbers(group, "A", H5T_IEEE_F64LE, {2, 2});
  }
  std::string bytes = read_text("a.h5");
  std::size_t begin = bytes.find("HEAP");
  if (heap == 1) begin = bytes.find("HEAP", begin + 1);
  EXPECT_NE(begin, std::string::npos);
  bytes.replace(begin + at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
  write_text("a.h5", bytes);
  return input_error("a.h5", path);
}

TEST_F(Hdf5SearchTest, LocalHeapsWithADamagedListOfFreePlaces) {
  const hdf5::Session session;
  // A heap states its size, its first free place and its address; then come its 88 bytes. A free
  // place states the next one, or 1 at the end of the list, and its own size.
  constexpr std::size_t size_at = 8, first_at = 16, data_at = 32;
  const auto expect_end = [](const std::string& error, const std::string& end) {
    EXPECT_TRUE(error.starts_with("a.h5: ") && error.ends_with(end + ")")) << error << "; " << end;
  };
  for (const int heap : {0, 1}) {
    const std::size_t first = heap == 0 ? 24 : 16;  // after the names
    const std::string place = " a free place at byte ", at = std::to_string(first);
    const std::string path = heap == 0 ? "/A" : "/g/A";
    EXPECT_EQ(error_of_heap(heap, first_at, first, path), "no error");
    expect_end(error_of_heap(heap, size_at, first + 8, path), "has" + place + at);
    expect_end(error_of_heap(heap, first_at, 88, path), "88 bytes has" + place + "88");
    // A list that leads back to itself.
    expect_end(error_of_heap(heap, data_at + first, first, path), "has" + place + at);
    expect_end(error_of_heap(heap, data_at + first + 8, 89 - first, path),
               "has " + std::to_string(89 - first) + " free bytes at byte " + at);
  }
}

/// The error of opening /A where the byte `at` of the superblock, behind a user block, is `value`.
std::string error_of_superblock(const Handle& access, std::size_t at, int value) {
  constexpr std::size_t block = 512;
  {
    const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    H5Pset_userblock(creation, block);
    const Handle file = create_file("a.h5", creation, access);
    add_numbers(file, "A", H5T_IEEE_F64LE, {2, 2});
  }
  std::string bytes = read_text("a.h5");
  bytes[block + at] = static_cast<char>(value);
  write_text("a.h5", bytes);
  return input_error("a.h5", "/A");
}

TEST_F(Hdf5SearchTest, LengthsThatHdf5DoesNotRead) {
  const hdf5::Session session;
  const Handle old_format(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const Handle new_format(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(new_format, H5F_LIBVER_V110, H5F_LIBVER_V110);
  const std::string what = "a.h5: damaged HDF5 file (its ", end = ", not 2, 4 or 8)";
  EXPECT_EQ(error_of_superblock(old_format, 14, 8), "no error");
  EXPECT_EQ(error_of_superblock(new_format, 10, 8), "no error");
  for (const int width : {3, 16, 32}) {
    const std::string bytes = std::to_string(width);
    for (const auto& [access, at] :
         {std::pair(&old_format, std::size_t{13}), std::pair(&new_format, std::size_t{9})}) {
      EXPECT_EQ(error_of_superblock(*access, at, width),
                what + "addresses have " + bytes + " bytes and its lengths 8" + end);
      EXPECT_EQ(error_of_superblock(*access, at + 1, width),
                what + "addresses have 8 bytes and its lengths " + bytes + end);
    }
  }
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

/// Writes a file with an external link. It must be made before the reader removes this kind of link
/// from the library.
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

TEST_F(Hdf5SearchTest, NothingOutsideTheFileIsRead) {
  const hdf5::Session session;
  write_text("secret", std::string(1000, 's'));
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
  write_text("link.h5", link_to_dataset);
  write_text("group.h5", link_to_group);
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

TEST_F(Hdf5SearchTest, LinksWithinTheFileAreFollowed) {
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

}  // namespace
}  // namespace qrtool::search_test
