// SPDX-License-Identifier: Apache-2.0
// parse.cpp: the commands, what their help says first, and which of them a line means.
#include "app/cli/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "app/cli/checks.hpp"
#include "app/cli/describe.hpp"
#include "app/cli/describe_bench.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr std::string_view overview =
    R"(usage: qrtool COMMAND [OPTION]... FILE...

Factors every matrix of a file by QR, or solves with it, and checks each result.

  qrtool factor a.h5 q.h5       A -> Q, R and an error report, for every matrix
  qrtool solve a.h5 b.h5 x.h5   x that minimises ||A x - b||, for every b
  qrtool append x.h5 a.h5 b.h5 y.h5     further rows, without those before
  qrtool apply q.h5 b.h5 x.h5   Q'b of stored factors, also Qb, R^-1 b, R^-H b
  qrtool verify a.h5 q.h5       measures the errors again, from the files alone
  qrtool info FILE              what is in a file, or what a run left there
  qrtool devices                what there is to run on
  qrtool bench                  times devices and libraries against each other
  qrtool generate --shape 1000x64x32 a.h5       test matrices

qrtool COMMAND --help lists the options of a command, qrtool --version the
version. Exit status: 0 good, 1 a matrix failed, 2 usage, 3 input, 4 device,
5 output, 6 memory or size, 7 internal error.
)";

constexpr std::string_view overview_over_mpi =
    R"(usage: mpirun -n P qrtool-mpi COMMAND [OPTION]... FILE...

P processes share the matrices of a file, or the rows of one tall matrix.

  mpirun -n 4 qrtool-mpi factor a.h5 q.h5
  mpirun -n 4 qrtool-mpi bench --mode r --shape 1000000x32

factor and bench use all processes; all other commands run in one, as by
qrtool. qrtool-mpi COMMAND --help lists the options of a command,
qrtool-mpi --version the version. Exit status: as of qrtool.
)";

constexpr std::string_view factor_about =
    R"(Factors every matrix of IN by QR, measures the errors of every result, and
writes Q, R and a report to OUT. The first word of a list is the default.

  qrtool factor a.h5 q.h5
  qrtool factor a.h5:/group/A q.h5 --mode r --precision double
  qrtool factor 'a.h5:/group/A[0:1000]' q.h5
  qrtool factor a.h5 q.h5 --dataset /A --dataset /group/B
  qrtool factor a.npy q.npz
  qrtool factor table.csv out.csv
  qrtool factor a.npy b.npy c.h5 --into results
)";
constexpr std::string_view solve_about =
    R"(Solves min ||A x - b|| for every A and every b, checks every x by its backward
error, and writes X and a report. The first word of a list is the default.

  qrtool solve a.h5 b.h5 x.h5
  qrtool solve data.h5:/A data.h5:/b x.h5
  qrtool solve a.npy b.npy x.npz
  qrtool solve table.csv out.csv --response y --intercept
  qrtool solve a.npy b1.npy b2.npy --into results
)";
constexpr std::string_view append_about =
    R"(Appends rows to R of factor --mode r, or to the state of solve --state, without
reading the rows before them. OUT is again such a file.

  qrtool append year.h5 today.csv new.h5      a table with the same columns
  qrtool append state.h5 a.npy b.npy new.h5   rows of A and of B
  qrtool append r.h5 a.npy new.h5             R alone
)";
constexpr std::string_view apply_about =
    R"(Multiplies B by stored factors, checks every product by the inverse one, and
writes X and a report. The first word of a list is the default.

  qrtool apply q.h5 b.h5 x.h5                 X = Q'B
  qrtool apply q.h5 b.h5 x.h5 --with rinvt    X = R^-H B, which whitens
  qrtool apply raw.npz b.npy x.npy --with q   as LAPACK's ormqr, without Q
)";
constexpr std::string_view verify_about =
    R"(Measures the errors of the factors in OUT against the matrices in IN, in
float64, from the files alone. Exit status 1 if any matrix fails.

  qrtool verify a.h5 q.h5
  qrtool verify table.csv out.csv --all
  qrtool verify a.h5 b.h5 x.h5
)";
constexpr std::string_view info_about =
    R"(Says what is in a file: its datasets, their shapes and types, and what factor
would read, or why it would stop. Of an output of factor or solve it says how it
was made, and how large the errors are. The word info may be left out.

  qrtool info a.h5
  qrtool info a.h5:/group/A
  qrtool info q.h5
)";
constexpr std::string_view devices_about =
    R"(Lists the OpenCL devices, their limits, the variants that take a problem there
or why not, and what --backend auto would choose for it.

  qrtool devices
  qrtool devices --shape 1x5000x5000 --precision double
  qrtool devices --timings      what earlier runs took, by which auto decides
  qrtool devices --build a.h5   builds its kernels before a run needs them
)";
constexpr std::string_view generate_about =
    R"(Writes test matrices, the same for the same seed however many there are.

  qrtool generate --shape 1000x64x32 a.h5
  qrtool generate --kind haar --special --shape 500x3x3 rotations.h5
)";

bool contains(const Args& args, std::string_view name) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::find(args.begin(), end, name) != end;
}
bool asks_for_help(const Args& args) { return contains(args, "--help") || contains(args, "-h"); }

/// A command: its name and the first text of its help. `Options` is its struct.
template <class Options>
struct CommandText {
  std::string_view name, positionals, about;
};

constexpr CommandText<FactorOptions> factor_text{"factor", "IN OUT", factor_about};
constexpr CommandText<SolveOptions> solve_text{"solve", "A B OUT", solve_about};
constexpr CommandText<AppendOptions> append_text{"append", "STATE NEW [B] OUT", append_about};
constexpr CommandText<ApplyOptions> apply_text{"apply", "FACTORS B OUT", apply_about};
constexpr CommandText<VerifyOptions> verify_text{"verify", "IN OUT", verify_about};
constexpr CommandText<GenerateOptions> generate_text{"generate", "--shape BxMxN OUT",
                                                     generate_about};
constexpr CommandText<InfoOptions> info_text{"info", "FILE", info_about};
constexpr CommandText<DevicesOptions> devices_text{"devices", "[FILE]", devices_about};
const CommandText<BenchOptions> bench_text{"bench", "", bench_about};

/// Returns the command with its options filled in, or its help.
template <class Options, const CommandText<Options>& text>
Command parse_command(const Invocation& invocation) {
  Options options;
  CommandLine line(fmt::format("{} {}", invocation.program, text.name), text.positionals,
                   text.about);
  describe_options(line, options);
  if (!line.parse(invocation.args)) return HelpRequest{line.help()};
  options.deciding = line.deciding_options();
  options.deciding.insert(options.deciding.begin(), {std::string(text.name), ""});
  check_options(options);
  return options;
}

template <class Options>
std::vector<Candidate> complete_command(const std::string& before, const std::string& typed) {
  Options options;
  CommandLine line("", "", "");
  describe_options(line, options);
  return line.complete(before, typed);
}

template <class Options>
bool option_takes_next_word(const std::string& word) {
  Options options;
  CommandLine line("", "", "");
  describe_options(line, options);
  return line.takes_next_word(word);
}

Command parse_help(const Invocation& invocation);
std::vector<Candidate> complete_help(const std::string&, const std::string&);

/// A command's name, and the functions that parse and complete the rest of its line.
struct CommandEntry {
  std::string_view name, about;
  Command (*parse)(const Invocation& invocation);
  std::vector<Candidate> (*complete)(const std::string& before, const std::string& typed);
  bool (*takes_next_word)(const std::string& word);
};

template <class Options, const CommandText<Options>& text>
constexpr CommandEntry entry_of(std::string_view about) {
  return {text.name, about, parse_command<Options, text>, complete_command<Options>,
          option_takes_next_word<Options>};
}

const CommandEntry commands[] = {
    entry_of<FactorOptions, factor_text>("Q, R and an error report of every matrix"),
    entry_of<SolveOptions, solve_text>("least squares"),
    entry_of<AppendOptions, append_text>("further rows of a result"),
    entry_of<ApplyOptions, apply_text>("products with stored factors"),
    entry_of<VerifyOptions, verify_text>("measures the errors again"),
    entry_of<GenerateOptions, generate_text>("test matrices"),
    entry_of<InfoOptions, info_text>("what is in a file"),
    entry_of<DevicesOptions, devices_text>("what there is to run on"),
    entry_of<BenchOptions, bench_text>("times devices and libraries"),
    {"help", "the options of a command", parse_help, complete_help,
     [](const std::string&) { return false; }}};

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const CommandEntry& command : commands) names.push_back(command.name);
  return names;
}

const CommandEntry* find_command(std::string_view name) {
  const auto* found = std::find_if(std::begin(commands), std::end(commands),
                                   [&](const CommandEntry& each) { return each.name == name; });
  return found == std::end(commands) ? nullptr : found;
}

/// Returns the first word that is a command, and not the value of an option.
Args::const_iterator find_command_word(const Args& args) {
  const auto takes_next = [](const std::string& word) {
    return std::any_of(std::begin(commands), std::end(commands),
                       [&](const CommandEntry& each) { return each.takes_next_word(word); });
  };
  for (auto word = args.begin(); word != args.end(); ++word) {
    if (find_command(*word) != nullptr && (word == args.begin() || !takes_next(*(word - 1))))
      return word;
  }
  return args.end();
}

std::string commands_hint() {
  return fmt::format("the commands are {}", join(command_names(), ", "));
}

UsageError unknown_command(const std::string& word) {
  const std::string_view near = nearest(word, command_names());
  return UsageError(fmt::format("unknown command '{}'{}", escape(word),
                                near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
                    commands_hint());
}

/// Returns the first text of --help.
std::string overview_of(const std::string& program) {
  if (program == "qrtool-mpi") return std::string(overview_over_mpi);
  return std::string(overview);
}

Command parse_help(const Invocation& invocation) {
  const auto& [program, args] = invocation;
  const auto topic = std::find_if(args.begin(), args.end(),
                                  [](const std::string& arg) { return !arg.starts_with('-'); });
  if (topic == args.end() || *topic == "help") return HelpRequest{overview_of(program)};
  const CommandEntry* command = find_command(*topic);
  if (command == nullptr) throw unknown_command(*topic);
  return command->parse({program, {"--help"}});
}

std::vector<Candidate> complete_command_name() {
  std::vector<Candidate> names;
  for (const CommandEntry& command : commands)
    names.push_back({std::string(command.name), std::string(command.about)});
  return names;
}

std::vector<Candidate> complete_help(const std::string&, const std::string&) {
  return complete_command_name();
}

/// Returns candidates for the end of a line, for the completion of shells: `words` are the words
/// after the program's name, the last of which is being typed.
std::string complete_line(Args words) {
  std::erase(words, "=");  // bash takes it for a word
  if (words.empty()) words.emplace_back();
  std::string typed = words.back();
  words.pop_back();
  std::string before = words.empty() ? "" : words.back();
  const std::size_t equals = typed.starts_with("--") ? typed.find('=') : std::string::npos;
  if (equals != std::string::npos) before = typed.substr(0, equals);
  const auto word = find_command_word(words);
  std::vector<Candidate> candidates =
      word == words.end() ? complete_command_name() : find_command(*word)->complete(before, typed);
  if (word == words.end())
    for (const char* option : {"--help", "--version"}) candidates.push_back({option});
  if (equals != std::string::npos)
    for (Candidate& each : candidates) each.word.insert(0, typed, 0, equals + 1);
  return candidate_lines(candidates, typed);
}

/// Whether a word that is no command is meant as a file: it is one, or looks like its name.
bool may_be_file(const std::string& word) {
  std::error_code error;
  return word.find_first_of("./:") != std::string::npos || std::filesystem::exists(word, error);
}

/// Parses a line without any command: a file alone is for `info`.
Command parse_without_command(const Invocation& invocation) {
  const Args& args = invocation.args;
  const auto is_word = [](const std::string& arg) { return !arg.starts_with('-'); };
  const auto word = std::find_if(args.begin(), args.end(), is_word);
  // Behind options, the first word may be the value of one.
  const bool has_file = word == args.begin() ? may_be_file(*word)
                                             : std::any_of(word, args.end(), [&](const auto& arg) {
                                                 return is_word(arg) && may_be_file(arg);
                                               });
  if (word != args.end() && !has_file) throw unknown_command(*word);
  if (word != args.end()) {
    if (word == args.begin() && args.size() > 1 && is_word(args[1]) && may_be_file(args[1]))
      throw UsageError(fmt::format("a command is missing before '{}'", escape(*word)),
                       fmt::format("qrtool factor {} {}, for example; {}", escape(*word),
                                   escape(args[1]), commands_hint()));
    return find_command("info")->parse(invocation);
  }
  if (asks_for_help(args)) return HelpRequest{overview_of(invocation.program)};
  constexpr std::array<std::string_view, 2> known{"--help", "--version"};
  const std::string_view near = nearest(args.front(), known);
  if (!near.empty())
    throw UsageError(
        fmt::format("unknown option '{}'; did you mean '{}'?", escape(args.front()), near));
  throw UsageError("a command is missing", commands_hint());
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  Args args(argv + std::min(argc, 1), argv + argc);
  const std::string program =
      argc > 0 && std::string_view(argv[0]).ends_with("qrtool-mpi") ? "qrtool-mpi" : "qrtool";
  if (args.empty()) return HelpRequest{overview_of(program), false};
  if (args.front() == "complete") return HelpRequest{complete_line({args.begin() + 1, args.end()})};
  if (contains(args, "--version")) return VersionRequest{contains(args, "--json")};
  // Options may come before the command; they belong to it.
  const auto word = find_command_word(args);
  if (word == args.end()) return parse_without_command({program, args});
  const CommandEntry& command = *find_command(*word);
  args.erase(word);
  return command.parse({program, args});
}

bool asks_for_json(int argc, const char* const* argv) {
  return contains(Args(argv + std::min(argc, 1), argv + argc), "--json");
}

}  // namespace qrtool
