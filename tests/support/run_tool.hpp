// SPDX-License-Identifier: Apache-2.0
// run_tool.hpp: runs qrtool in the way of a user, and reads the files that it writes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "io/read/reader.hpp"
#include "tests/support/temporary_directory.hpp"

namespace qrtool::test {

struct ToolOptions {
  std::string input = {};  // on standard input
  // Changes; no value: unset.
  std::map<std::string, std::optional<std::string>> environment = {};
  std::string directory = {};           // to run in
  std::function<void()> in_child = {};  // before exec: limits, streams, ...
  double timeout_seconds = 300;
};

struct ToolResult {
  int exit_code = -1;  // -1: ended by `signal`
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
};

/// A running qrtool. Its streams are files in memory, so that it never waits for a reader.
class RunningTool {
 public:
  RunningTool(const std::vector<std::string>& arguments, ToolOptions options = {});
  ~RunningTool();
  RunningTool(const RunningTool&) = delete;
  RunningTool& operator=(const RunningTool&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Waits for the end of the process, and kills it after the timeout.
  ToolResult wait();

 private:
  ToolOptions options_;
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
};

ToolResult run_tool(const std::vector<std::string>& arguments, ToolOptions options = {});

/// Holds all matrices of a dataset, in float64.
struct Stored {
  Source source;
  Batch<double> batch;
  BatchView<double> view() const { return batch.view(); }
};
Stored read_dataset(const std::string& path, const std::string& dataset);

/// Writes a file with one dataset "A" of `leading` x m x n.
template <class T>
void write_matrices(const std::string& path, const std::vector<index_t>& leading,
                    BatchView<const T> a);

/// Writes a file with Q and R and no marks of this tool.
template <class T>
void write_factors(const std::string& path, const std::vector<index_t>& leading,
                   BatchView<const T> q, BatchView<const T> r);

/// `count` matrices of a kind (core/matrix/matrices.hpp), seed 0.
template <class T>
Batch<T> make_matrices(std::string_view kind, index_t count, index_t m, index_t n);

}  // namespace qrtool::test
