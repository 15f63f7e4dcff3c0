// SPDX-License-Identifier: Apache-2.0
// file_set_test.cpp: a set of files appears whole or not at all, whatever file cannot get its name.
#include "io/file/file_set.hpp"

#include <unistd.h>

#include "tests/io/file_test.hpp"

namespace qrtool::file_set_test {
namespace {

using Names = std::vector<std::string>;

class FileSetTest : public FileTest {};

void put(const AtomicFile& file, const std::string& text) {
  ASSERT_EQ(write(file.descriptor(), text.data(), text.size()), std::ssize(text));
}

TEST_F(FileSetTest, AllAppearAndObsoleteFilesGo) {
  write_text("a", "old");
  write_text("obsolete", "old");
  AtomicFile a("a", true), b("b", true);
  put(a, "new a");
  put(b, "new b");
  FileSet files;
  files.add(a);
  files.add(b);
  files.add_obsolete("obsolete");
  files.add_obsolete("never there");
  EXPECT_EQ(read_text("a"), "old");
  files.commit();
  EXPECT_EQ(names(), (Names{"a", "b"}));
  EXPECT_EQ(read_text("a"), "new a");
  EXPECT_EQ(read_text("b"), "new b");
}

/// The last of the files cannot get its name, because a file of this name has appeared.
TEST_F(FileSetTest, NoneAppearsWhereOneCannot) {
  write_text("old", "old");
  {
    AtomicFile replacing("old", true), fresh("fresh", false), late("late", false);
    put(replacing, "new");
    FileSet files;
    for (AtomicFile* file : {&replacing, &fresh, &late}) files.add(*file);
    write_text("late", "of someone else");
    EXPECT_EQ(error_of<OutputError>([&] { files.commit(); }),
              "'late' was created meanwhile | use --force to replace it");
    EXPECT_EQ(read_text("old"), "old");
    EXPECT_EQ(read_text("late"), "of someone else");
    EXPECT_FALSE(std::filesystem::exists("fresh"));
  }
  EXPECT_EQ(names(), (Names{"late", "old"}));
}

}  // namespace
}  // namespace qrtool::file_set_test
