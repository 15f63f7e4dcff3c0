// SPDX-License-Identifier: Apache-2.0
// dataset_test.cpp: datasets that cannot be read as matrices are refused with a message.
#include "tests/io/hdf5/reading.hpp"

namespace qrtool::dataset_test {
namespace {

using hdf5::Dims;

class Hdf5DatasetTest : public FileTest {};

TEST_F(Hdf5DatasetTest, WhatIsNoMatrix) {
  const hdf5::Session session;
  const Handle whole(H5Tcreate(H5T_COMPOUND, 16), H5Tclose);
  H5Tinsert(whole, "r", 0, H5T_STD_I64LE);
  H5Tinsert(whole, "i", 8, H5T_STD_I64LE);
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
      {whole,
       "is a compound (r, i); only numbers can be read, complex ones as (r, i) or (real, imag)"},
      {compound,
       "is a compound (time, \\x1b]0;x\\x07); only numbers can be read, complex ones as (r, i) or "
       "(real, imag)"},
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
    create_dataset(file, "A", boolean, {2, 2});
    const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle b(
        H5Dcreate2(file, "b", H5T_IEEE_F64LE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        H5Dclose);
  }
  EXPECT_EQ(
      input_error("a.h5"),
      "a.h5: holds no matrices: /A is boolean (FALSE, TRUE); only numbers can be read, /b has "
      "rank 0 (scalar); a matrix has two dimensions");
  create_file("a.h5");
  EXPECT_EQ(input_error("a.h5"), "a.h5: holds no dataset");
}

/// The bytes of `name` with `found`, which must be there, replaced by `wanted` of the same length.
void replace_in_file(const std::string& name, const std::string& found, const std::string& wanted) {
  std::string bytes = read_text(name);
  const std::size_t at = bytes.find(found);
  ASSERT_NE(at, std::string::npos);
  write_text(name, bytes.replace(at, wanted.size(), wanted));
}

TEST_F(Hdf5DatasetTest, WhatNewerReleasesWroteIsNamed) {
  const std::string hint =
      " | write it again in an older format: with h5py h5py.File(name, \"w\", libver=\"v110\"), or "
      "without libver";
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  const std::string library =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  {
    const Handle file = create_file("a.h5");
    const Handle creation = creation_properties();
    const hsize_t chunk[] = {2, 2};
    H5Pset_chunk(creation, 2, chunk);
    add_numbers(file, "A", H5T_IEEE_F64LE, {4, 4}, creation);
  }
  // The layout message of chunks has its version, its class, and one number more than dimensions.
  replace_in_file("a.h5", {3, 2, 3}, {5, 2, 3});
  EXPECT_EQ(input_error("a.h5"),
            "a.h5: /A is in a format that HDF5 " + library +
                " does not know (bad version number for layout message): a newer release wrote it, "
                "or it is damaged" +
                hint);
  {
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const Handle file = create_file("a.h5", H5P_DEFAULT, access);
  }
  const std::string signature = "\x89HDF\r\n\x1a\n";
  replace_in_file("a.h5", signature + '\3', signature + '\7');
  EXPECT_EQ(
      input_error("a.h5"),
      "a.h5: it is in a format that HDF5 " + library +
          " does not know (bad superblock version number): a newer release wrote it, or it is "
          "damaged" +
          hint);
}

TEST_F(Hdf5DatasetTest, SizesThatCannotBe) {
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
  EXPECT_EQ(limit_error({1 << 20, 1 << 17}).rfind("a.h5: dataset /A claims 1.0 TiB in a file", 0),
            0u);
  // Chunks that were never written take no room.
  EXPECT_EQ(limit_error({1 << 15, 1 << 13}), "no error");
}

TEST_F(Hdf5DatasetTest, WithoutMemoryBeforeAnErrorIsNoDamage) {
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {2, 2});
  std::string bytes = read_text("a.h5");
  write_text("a.h5", bytes.replace(bytes.find("HEAP"), 4, "HEAQ"));
  const auto limit_error = [] { return error_of<LimitError>([] { open_file("a.h5"); }); };
  {
    const hdf5::Session session;
    errno = ENOMEM;  // as HDF5 leaves it, where it goes on without telling
  }
  EXPECT_EQ(limit_error().rfind("a.h5: out of memory in the HDF5 library", 0), 0u);
  // An error that was said is not said again.
  EXPECT_EQ(input_error("a.h5").rfind("a.h5: damaged HDF5 file", 0), 0u);
}

TEST_F(Hdf5DatasetTest, MissingFilter) {
  const hdf5::Session session;
  for (const auto& [filter, name] : {std::pair{32001, "blosc"}, std::pair{32004, "lz4"},
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

}  // namespace
}  // namespace qrtool::dataset_test
