// SPDX-License-Identifier: Apache-2.0
// input_file_test.cpp: files that are not complete HDF5 files are refused with a message.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file/input_file.hpp"
#include "io/file/scratch_file.hpp"
#include "tests/io/hdf5/reading.hpp"

namespace qrtool::input_file_test {
namespace {

class InputFileTest : public FileTest {};

TEST_F(InputFileTest, WhatIsNoHdf5File) {
  std::filesystem::create_directory("folder.h5");
  ASSERT_EQ(mkfifo("pipe.h5", 0600), 0);
  write_text("empty.h5", "");
  write_text("text.h5", "1,2\n3,4\n");
  write_text("binary.h5", std::string("\x01\x02\0\x03", 4));
  write_text("short.h5", "\x89HDF\r\n\x1a\n");
  write_numbers("hdf5.csv", "A", H5T_IEEE_F64LE, {2, 2});
  EXPECT_EQ(input_error("folder.h5"), "cannot read 'folder.h5': it is a directory");
  EXPECT_EQ(input_error("pipe.h5"), "cannot read 'pipe.h5': it is a pipe, not a file");
  EXPECT_EQ(input_error("/dev/zero"), "cannot read '/dev/zero': it is a device, not a file");
  EXPECT_EQ(input_error("none.h5"), "cannot read 'none.h5': No such file or directory");
  EXPECT_EQ(input_error("hdf5.csv:A"),
            "cannot read 'hdf5.csv:A': No such file or directory | a dataset's path begins with a "
            "slash: hdf5.csv:/A");
  EXPECT_EQ(input_error("none.h5:A"), "cannot read 'none.h5:A': No such file or directory");
  EXPECT_EQ(input_error("empty.h5"), "empty.h5: the file is empty");
  EXPECT_EQ(input_error("text.h5"),
            "text.h5: not an HDF5 file (it looks like text) | for CSV let the name end in .csv, or "
            "use standard input: - < text.h5");
  EXPECT_EQ(input_error("binary.h5"),
            "binary.h5: not an HDF5 file | write the matrices as HDF5, .npy, .npz, Matrix Market "
            "or, with the ending .csv, .tsv or .txt, as CSV");
  EXPECT_EQ(input_error("short.h5").rfind("short.h5: damaged HDF5 file (", 0), 0u);
  EXPECT_EQ(input_error("hdf5.csv"),
            "hdf5.csv: an HDF5 file, although its name says text | rename it to end in .h5");
}

TEST_F(InputFileTest, ADirectoryIsNoFileWithDatasets) {
  std::filesystem::create_directory("d");
  write_numbers("d/f.h5", "A", H5T_IEEE_F64LE, {2, 2});
  EXPECT_EQ(input_error("d:/f.h5"),
            "cannot read 'd:/f.h5': No such file or directory | write d/f.h5");
  EXPECT_EQ(input_error("d:/f.h5:/A"),
            "cannot read 'd:/f.h5': No such file or directory | write d/f.h5");
  EXPECT_EQ(input_error("d:/g.h5"), "cannot read 'd:/g.h5': No such file or directory");
  EXPECT_EQ(open_file("d/f.h5:/A")->source().m, 2);
}

TEST_F(InputFileTest, AChangeIsNoticedWhereItsTimeIsSetBack) {
  write_text("a.npy", "first");
  struct stat before {};
  ASSERT_EQ(stat("a.npy", &before), 0);
  const int file = open("a.npy", O_RDWR);
  const FileStamp stamp(file);
  stamp.require_unchanged(file, "a.npy");
  ASSERT_EQ(pwrite(file, "other", 5, 0), 5);
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(futimens(file, times), 0);
  EXPECT_EQ(error_of<InputError>([&] { stamp.require_unchanged(file, "a.npy"); }),
            "a.npy: the file changed while it was being read | wait until the program that writes "
            "it is done, or read a copy");
  close(file);
}

TEST_F(InputFileTest, AScratchFileNeverHasAName) {
  std::filesystem::create_directory("d");
  const std::filesystem::file_time_type long_ago{};
  std::filesystem::last_write_time("d", long_ago);
  EXPECT_GE(create_nameless("d"), 0);
  EXPECT_EQ(std::filesystem::last_write_time("d"), long_ago);
  EXPECT_LT(create_nameless("none"), 0);
}

TEST_F(InputFileTest, OpenForWritingElsewhere) {
  write_numbers("locked.h5", "A", H5T_IEEE_F64LE, {2, 2});
  const int lock = open("locked.h5", O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(input_error("locked.h5"), "locked.h5: it is being written by another program");
  close(lock);
  EXPECT_EQ(open_file("locked.h5")->source().m, 2);

  const pid_t child = fork();
  if (child == 0) {
    // The child ends with the file open, like a writer that is killed.
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

TEST_F(InputFileTest, Truncated) {
  write_numbers("a.h5", "A", H5T_IEEE_F64LE, {30, 10});
  const std::string bytes = read_text("a.h5");
  write_text("t.h5", bytes.substr(0, 4000));
  EXPECT_EQ(input_error("t.h5"),
            "t.h5: truncated: 4000 of " + std::to_string(bytes.size()) + " bytes");
}

}  // namespace
}  // namespace qrtool::input_file_test
