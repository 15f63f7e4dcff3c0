// SPDX-License-Identifier: Apache-2.0
// damage_test.cpp: an output is complete or does not exist, and a damaged one is not read.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/io/hdf5/writing.hpp"

#include "io/open/factors.hpp"
#include "io/open/output.hpp"

namespace qrtool::damage_test {
namespace {

class Hdf5DamageTest : public FileTest {};

using Names = std::vector<std::string>;

TEST_F(Hdf5DamageTest, NothingIsLeftWithoutCommit) {
  write_text("o.h5", "old");
  OutputSpec spec = factors_spec({2}, 4, 3, Order::row, ElementType::float32);
  EXPECT_EQ(error_of<OutputError>([&] { create_output(spec); }),
            "'o.h5' exists | use --force to replace it");
  spec.force = true;
  {
    const auto writer = create_output(spec);
    const auto values = random_numbers<float>(24, 1);
    writer->write("Q", 0, packed(values.data(), 2, 4, 3));
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(names(), Names{"o.h5"});
  EXPECT_EQ(read_text("o.h5"), "old");
  spec.force = false;
  spec.path = "new.h5";
  {
    const auto writer = create_output(spec);
    EXPECT_EQ(writer->files(), Names{"new.h5"});
    write_text("new.h5", "other");
    EXPECT_EQ(error_of<OutputError>([&] { writer->commit(); }),
              "'new.h5' was created meanwhile | use --force to replace it");
  }
  EXPECT_EQ(read_text("new.h5"), "other");
  EXPECT_EQ(names(), (Names{"new.h5", "o.h5"}));
}

TEST_F(Hdf5DamageTest, TooLittleSpace) {
  OutputSpec spec = factors_spec({1 << 20}, 1 << 10, 1 << 10, Order::row, ElementType::float64);
  const std::string error = error_of<OutputError>([&] { create_output(spec); });
  EXPECT_EQ(error.rfind("cannot write 'o.h5': 16 TiB needed, ", 0), 0u) << error;
  spec.leading = {1 << 30, 1 << 30};
  EXPECT_EQ(error_of<LimitError>([&] { create_output(spec); }),
            "the output would be larger than a file can be");
  EXPECT_EQ(names(), Names{});
}

/// Runs `action` in a child process. When the action calls its argument, files of the child can no
/// longer grow beyond `bytes`. Returns the exit code, or 128 + signal.
template <class Action>
int run_with_size_limit(rlim_t bytes, Action action) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const auto set_limit = [bytes] {
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
    };
    int code = 7;
    try {
      action(set_limit);
      code = 0;
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
      if (std::string(error.what()).find("file size limit") == std::string::npos) code = 8;
    }
    std::exit(code);  // runs the exit handlers, in which HDF5 crashes
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(Hdf5DamageTest, FailedWritesAtEveryPoint) {
  const OutputSpec spec = factors_spec({300}, 16, 16, Order::row, ElementType::float64);
  write_file<double>(spec, 50);
  const auto size = static_cast<rlim_t>(std::filesystem::file_size("o.h5"));
  const std::string whole = read_text("o.h5");
  OutputSpec forced = spec;
  forced.force = true;
  int failed = 0;
  for (rlim_t limit = 0; limit <= size + 60000; limit += 40009) {
    const int code = run_with_size_limit(limit, [&](auto set_limit) {
      const auto writer = create_output(forced);
      set_limit();
      for (const MatrixDataset& each : spec.datasets) {
        const auto values = random_numbers<double>(300 * 256, each.name == "Q" ? 1 : 2);
        for (index_t b = 0; b < 300; b += 50) {
          writer->write(each.name, b, packed(values.data() + b * 256, 50, 16, 16));
        }
      }
      writer->write_report(0, some_report(300));
      writer->commit();
    });
    EXPECT_EQ(code, limit < size ? 5 : 0) << limit << " of " << size;
    failed += code == 5;
    EXPECT_EQ(names(), Names{"o.h5"});
    ASSERT_TRUE(read_text("o.h5") == whole);
  }
  EXPECT_GT(failed, 20);
  EXPECT_EQ(run_with_size_limit(100000,
                                [&](auto set_limit) {
                                  set_limit();
                                  create_output(forced);
                                }),
            5);
}

TEST_F(Hdf5DamageTest, AfterAFailedWriteNothingCanBeCommitted) {
  // More than the chunk cache holds, so that the write fails and not only the commit.
  const OutputSpec spec = factors_spec({4000}, 16, 16, Order::row, ElementType::float64);
  std::string second = "no error";
  const int code = run_with_size_limit(1 << 20, [&](auto set_limit) {
    const auto writer = create_output(spec);
    set_limit();
    const auto values = random_numbers<double>(4000 * 256, 1);
    const auto view = packed(values.data(), 4000, 16, 16);
    try {
      writer->write("Q", 0, view);
      writer->write("R", 0, view);
    } catch (const OutputError&) {
      second = error_of<OutputError>([&] { writer->commit(); });
      if (second == "cannot write 'o.h5': an earlier write failed") throw;
    }
  });
  EXPECT_EQ(code, 5);
  EXPECT_EQ(names(), Names{});
}

/// Opens and reads all factors. Returns true where they are the numbers that were written.
bool reads_right(const std::string& name, index_t count, index_t m, index_t n) {
  const StoredFactors factors = open_factors(name, Order::automatic);
  return factors.q->source().type == ElementType::float64 &&
         read_all<double>(*factors.q) == random_numbers<double>(count * m * n, 1) &&
         read_all<double>(*factors.r) == random_numbers<double>(count * n * n, 2);
}

TEST_F(Hdf5DamageTest, EveryTruncationIsRefused) {
  write_file<double>(factors_spec({20}, 8, 4, Order::row, ElementType::float64), 20);
  const std::string bytes = read_text("o.h5");
  for (std::size_t length = 1; length < bytes.size(); length += 50) {
    write_text("t.h5", bytes.substr(0, length));
    const std::string error = error_of<InputError>([] { open_factors("t.h5", Order::row); });
    EXPECT_EQ(error.rfind("t.h5: ", 0), 0u) << error;
    if (length > 100) {
      EXPECT_EQ(error, "t.h5: truncated: " + std::to_string(length) + " of " +
                           std::to_string(bytes.size()) + " bytes");
    }
  }
}

enum class Answer { right, wrong, refused };

/// Reads d.h5 in a process of its own, and returns what that says. HDF5 itself crashes over some
/// damaged attributes, because strings of variable length have no checksum; the program ends such a
/// crash with exit code 3.
template <class ReadsRight>
Answer answer_of_child(ReadsRight reads_right) {
  const pid_t child = fork();
  if (child == 0) {
    Answer answer = Answer::wrong;
    try {
      answer = reads_right() ? Answer::right : Answer::wrong;
    } catch (const InputError& error) {
      if (std::string(error.what()).starts_with("d.h5: ")) answer = Answer::refused;
    } catch (const LimitError&) {
      answer = Answer::refused;
    }
    _exit(static_cast<int>(answer));
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return Answer::wrong;
  return WIFEXITED(status) ? static_cast<Answer>(WEXITSTATUS(status)) : Answer::refused;
}

TEST_F(Hdf5DamageTest, FlippedBitsAreNeverReadAsNumbers) {
  OutputSpec spec = factors_spec({2, 30}, 8, 4, Order::row, ElementType::float64);
  write_file<double>(spec, 60);
  const std::string bytes = read_text("o.h5");
  ASSERT_TRUE(reads_right("o.h5", 60, 8, 4));
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = bytes;
    // Half of the bits are in the first part of the file, which holds the metadata.
    const std::size_t at = random() % (round % 2 == 0 ? bytes.size() : 4096);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    write_text("d.h5", damaged);
    const Answer answer = answer_of_child([] { return reads_right("d.h5", 60, 8, 4); });
    EXPECT_NE(answer, Answer::wrong) << "byte " << at;
    if (answer == Answer::refused) ++refused;
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace qrtool::damage_test
