// SPDX-License-Identifier: Apache-2.0
// main.cpp: sets up the process, parses the command line, runs one command and exits.
#include <fcntl.h>
#include <fmt/format.h>
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "app/cli/parse.hpp"
#include "app/commands/commands.hpp"
#include "app/engine/opencl.hpp"
#include "app/engine/timings.hpp"
#include "app/process/console.hpp"
#include "app/process/signals.hpp"
#include "app/ranks/agreement.hpp"
#include "app/ranks/world.hpp"
#include "app/run/backends/opencl_process.hpp"
#include "app/run/backends/timings_file.hpp"
#include "app/run/verdict/outcome.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

/// Opens missing standard streams, so that no file that is opened later gets their numbers. Reading
/// and writing them still fails.
void open_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1)
      open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// Makes the C library give freed memory back to the system, so that --memory bounds what the
/// process holds. By itself glibc keeps freed blocks up to the size of the largest one so far.
void give_back_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

ExitCode run(const HelpRequest& request, Comm&) {
  if (!request.was_asked) {
    write_stderr(request.text);
    return ExitCode::usage;
  }
  write_stdout(request.text);
  return ExitCode::good;
}

ExitCode run(const VersionRequest& request, Comm&) {
  if (request.json) {
    write_json({{"schema", "qrtool.version/1"},
                {"version", QRTOOL_VERSION},
                {"hdf5", QRTOOL_HDF5_VERSION},
                {"eigen", QRTOOL_EIGEN_VERSION}});
  } else {
    write_stdout(fmt::format("qrtool {} (HDF5 {}, Eigen {})\n", QRTOOL_VERSION, QRTOOL_HDF5_VERSION,
                             QRTOOL_EIGEN_VERSION));
  }
  return ExitCode::good;
}

ExitCode run(const FactorOptions& options, Comm& world) {
  if (is_standard_output(options.output)) keep_stdout_free();
  return run_factor(options, world);
}
ExitCode run(const SolveOptions& options, Comm&) {
  if (is_standard_output(options.output)) keep_stdout_free();
  return run_solve(options);
}
ExitCode run(const AppendOptions& options, Comm&) { return run_append(options); }
ExitCode run(const ApplyOptions& options, Comm&) {
  if (is_standard_output(options.output)) keep_stdout_free();
  return run_apply(options);
}
ExitCode run(const VerifyOptions& options, Comm&) { return run_verify(options); }
ExitCode run(const GenerateOptions& options, Comm&) { return run_generate(options); }
ExitCode run(const DevicesOptions& options, Comm&) { return run_devices(options); }
ExitCode run(const InfoOptions& options, Comm&) { return run_info(options); }
ExitCode run(const BenchOptions& options, Comm&) { return run_bench(options); }

Error internal_error(const char* what) {
  return InternalError(
      fmt::format("internal error in version {}: {}; please report", QRTOOL_VERSION, what),
      "add the command line and, if possible, the input file");
}

/// A thread needs address space for its stack and a place among the processes of the user. The
/// system reports both with the same number.
Error no_thread_error() {
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    return LimitError(fmt::format("cannot start a thread: the address space is limited to {}",
                                  format_bytes(space.rlim_cur)),
                      "raise ulimit -v");
  return LimitError("cannot start a thread: too many processes", "raise ulimit -u");
}

/// Turns the exception that is being handled into one with a message for the user.
Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return LimitError("out of memory", "try a smaller --memory or fewer --threads");
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again)
      return internal_error(error.what());
    return no_thread_error();
  } catch (const std::exception& error) {
    return internal_error(error.what());
  } catch (...) {
    return internal_error("unknown exception");
  }
}

/// libhdf5 crashes when it is shut down after a failed write. Where several outputs were to be
/// written, the exit code of a worse failure may hide such a one.
bool may_have_failed_write(ExitCode code) { return code >= ExitCode::output; }

/// Ends the process without shutting libraries down.
[[noreturn]] void end_at_once(int code) {
  std::fflush(nullptr);
  _exit(code);
}

[[noreturn]] void fail(const Error& error, std::unique_ptr<Comm> world, bool with_json) {
  print_failure(error.what());
  print_hint(error.hint());
  if (with_json) write_json(to_json(Failure{error.code(), error.what(), error.hint()}));
  std::fflush(stdout);
  // mpirun may end this rank when another rank exits; the message is printed already.
  set_interrupt_message("");
  const int code = static_cast<int>(error.code());
  wait_for_opencl();
  close_log(code);
  expect_exit();
  if (world) abandon_world(*world, code);
  world.reset();
  if (error.code() != ExitCode::output) std::exit(code);
  end_at_once(code);
}

/// Returns the command line in a form that can be given again, apart from quotes.
std::string line_of(int argc, char** argv) {
  std::string line = "$";
  for (int i = 0; i < argc; ++i) line += fmt::format(" {}", escape(argv[i]));
  return line;
}

/// Returns what the ranks of a run must have in common: the command, and the options that decide.
std::vector<GivenOption> shared_part_of(const Command& command) {
  return std::visit(
      [](const auto& options) -> std::vector<GivenOption> {
        if constexpr (std::is_base_of_v<PrintOptions, std::decay_t<decltype(options)>>)
          return options.deciding;
        else
          return {{"--help or --version", ""}};
      },
      command);
}

std::string log_of(const Command& command) {
  return std::visit(
      [](const auto& options) {
        if constexpr (std::is_base_of_v<PrintOptions, std::decay_t<decltype(options)>>)
          return options.log;
        else
          return std::string();
      },
      command);
}

/// Several ranks share the work of `factor`. Rank 0 runs every other command alone.
ExitCode run_command(int argc, char** argv, Comm& world) {
  Command command;
  together(world, [&] {
    command = parse_command_line(argc, argv);
    if (const std::string log = log_of(command); !log.empty() && world.is_root())
      open_log(log, line_of(argc, argv));
  });
  agree_on_options(world, shared_part_of(command));
  ExitCode code = ExitCode::good;
  if (std::holds_alternative<FactorOptions>(command)) {
    code = std::visit([&](const auto& options) { return run(options, world); }, command);
    together(world, finish_stdout);
    if (world.size() > 1) set_interrupt_message("");
    return code;
  }
  together(world, [&] {
    if (!world.is_root()) return;
    code = std::visit([&](const auto& options) { return run(options, world); }, command);
    finish_stdout();
  });
  return code;
}

}  // namespace
}  // namespace qrtool

int main(int argc, char** argv) {
  using namespace qrtool;
  if (const std::optional<int> code = build_opencl_kernels(argc, argv)) _exit(*code);
  give_back_freed_memory();
  open_standard_streams();
  install_signal_handlers();
  std::unique_ptr<Comm> world;
  try {
    world = join_world();
    if (world->size() > 1) share_interrupt_message();
    if (!world->is_root()) {
      silence_console();
      set_interrupt_message("");
    }
    const int code = static_cast<int>(run_command(argc, argv, *world));
    wait_for_opencl();
    remember_timings();
    close_log(code);
    finish_log();
    expect_exit();
    if (may_have_failed_write(static_cast<ExitCode>(code))) {
      world.reset();
      end_at_once(code);
    }
    return code;
  } catch (...) {
    fail(current_error(), std::move(world), asks_for_json(argc, argv));
  }
}
