// SPDX-License-Identifier: Apache-2.0
#include "app/cli/parse.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>

#include "app/cli/option_values.hpp"
#include "core/error.hpp"
#include "core/matrix/matrices.hpp"
#include "tests/support/run_tool.hpp"

namespace qrtool::parse_test {
namespace {

using test::read_text;
using test::run_tool;
using test::ToolResult;

const std::vector<std::string> command_names{"factor", "append", "apply", "verify", "generate"};

template <class Options>
Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "qrtool");
  return std::get<Options>(
      parse_command_line(static_cast<int>(arguments.size()), arguments.data()));
}

TEST(Options, DefaultsOfFactor) {
  const auto o = parse<FactorOptions>({"factor", "in.h5", "out.h5"});
  EXPECT_EQ(o.input, "in.h5");
  EXPECT_EQ(o.output, "out.h5");
  EXPECT_EQ(o.mode, Mode::reduced);
  EXPECT_EQ(o.sign, std::nullopt);
  EXPECT_EQ(o.precision.type, std::nullopt);
  EXPECT_EQ(o.arithmetic, Arithmetic::any);
  EXPECT_EQ(o.order, Order::automatic);
  EXPECT_EQ(o.backend.name, "auto");
  EXPECT_EQ(o.memory_bytes, std::nullopt);
  EXPECT_EQ(o.threads, 0);
  EXPECT_EQ(o.progress, ProgressMode::automatic);
  EXPECT_FALSE(o.force || o.json || o.quiet || o.verbose || o.explain);
}

TEST(Options, EveryOptionOfFactorArrives) {
  const auto o = parse<FactorOptions>(
      {"factor",    "--mode",    "raw",       "in.h5",      "--sign=lapack", "--precision",
       "double",    "--dataset", "/A",        "--order",    "column",        "--backend",
       "cpu",       "--variant", "cpu/eigen", "--memory",   "1.5GB",         "--threads",
       "3",         "--force",   "--report",  "r.json",     "--json",        "out.h5",
       "--explain", "--quiet",   "--verbose", "--progress", "never"});
  EXPECT_EQ(o.mode, Mode::raw);
  EXPECT_EQ(o.sign, Sign::lapack);
  EXPECT_EQ(o.precision.type, ElementType::float64);
  EXPECT_FALSE(o.precision.is_mixed);
  EXPECT_EQ(o.dataset, "/A");
  EXPECT_EQ(o.order, Order::column);
  EXPECT_EQ(o.backend.name, "cpu");
  EXPECT_EQ(o.backend.variant, "cpu/eigen");
  EXPECT_EQ(o.memory_bytes, 1500000000u);
  EXPECT_EQ(o.threads, 3);
  EXPECT_EQ(o.report, "r.json");
  EXPECT_EQ(o.progress, ProgressMode::never);
  EXPECT_EQ(o.input, "in.h5");
  EXPECT_EQ(o.output, "out.h5");
  EXPECT_TRUE(o.force && o.json && o.quiet && o.verbose && o.explain);
}

TEST(Options, ArithmeticByChoice) {
  const auto mixed = parse<FactorOptions>({"factor", "a", "b", "--precision", "mixed"});
  EXPECT_EQ(mixed.precision.type, ElementType::float32);
  EXPECT_TRUE(mixed.precision.is_mixed);
  const auto strict = parse<FactorOptions>({"factor", "a", "b", "--arithmetic", "strict"});
  EXPECT_EQ(strict.arithmetic, Arithmetic::strict);
}

TEST(Options, MayComeBeforeTheCommandAndTheLastOneCounts) {
  const auto o = parse<VerifyOptions>({"-q", "--progress", "never", "--memory=1G", "verify", "a",
                                       "b", "--memory", "2G", "--criteria", "m-eps", "--all"});
  EXPECT_TRUE(o.quiet && o.all);
  EXPECT_EQ(o.progress, ProgressMode::never);
  EXPECT_EQ(o.memory_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(o.criteria, Criteria::m_eps);
}

TEST(Options, FilesMayHaveStrangeNames) {
  const auto o = parse<FactorOptions>({"factor", "-q", "--", "--force", "-x"});
  EXPECT_EQ(o.input, "--force");
  EXPECT_EQ(o.output, "-x");
  EXPECT_FALSE(o.force);
  EXPECT_EQ(parse<FactorOptions>({"factor", "-", "q.h5"}).input, "-");
  EXPECT_EQ(parse<FactorOptions>({"factor", "[a,b].h5", "{}"}).input, "[a,b].h5");
}

TEST(Options, EveryOptionOfGenerateArrives) {
  const auto o =
      parse<GenerateOptions>({"generate", "--shape", "2x3x4x4", "--kind", "haar", "--precision",
                              "double", "--seed", "7", "--special", "a.h5"});
  EXPECT_EQ(o.leading, (std::vector<index_t>{2, 3}));
  EXPECT_EQ(o.m, 4);
  EXPECT_EQ(o.n, 4);
  EXPECT_EQ(o.kind, "haar");
  EXPECT_EQ(o.type, ElementType::float64);
  EXPECT_EQ(o.cond, std::nullopt);
  EXPECT_EQ(o.seed, 7u);
  EXPECT_TRUE(o.special);
  const auto offset = parse<GenerateOptions>(
      {"generate", "--shape", "4x4", "--kind", "offset", "--cond", "1e3", "a.h5"});
  EXPECT_EQ(offset.cond, 1e3);
}

/// Options are refused that would have no effect, or whose result would be written where nobody
/// looks for it.
TEST(Options, WhatCannotBeMeantIsRefused) {
  for (const auto& line : std::vector<std::vector<const char*>>{
           {"generate", "--shape", "4x4", "--cond", "10", "a.h5"},
           {"generate", "--shape", "4x4", "--kind", "haar", "--cond", "10", "a.h5"},
           {"factor", "a.h5", "q.h5", "--device", ""},
           {"factor", "a.h5", "q.h5", "--report="},
           {"verify", "a.h5", "q.h5", "--dataset", ""},
           {"factor", "a.h5", "/dev/stdout"},
           {"generate", "--shape", "4x4", "/dev/fd/1"}})
    EXPECT_THROW(parse<FactorOptions>(line), UsageError) << testing::PrintToString(line);
  EXPECT_THROW(parse<FactorOptions>({"factor", "a.h5", "q.h5", "--scratch", "/nonexistent"}),
               OutputError);
}

TEST(OptionValues, Sizes) {
  const std::pair<const char*, std::uint64_t> good[] = {
      {"4096", 4096},       {"10B", 10},           {"512MiB", 512ull << 20},
      {"2GiB", 2ull << 30}, {"1.5GB", 1500000000}, {"1.5g", 3ull << 29},
      {"8K", 8192},         {"1kb", 1000},         {"3TiB", 3ull << 40}};
  for (const auto& [text, bytes] : good) EXPECT_EQ(parse_size("--memory", text), bytes) << text;
  for (const char* text : {"", "x", "-1", "1.2.3", "1 GB", "1QB", "1GBB", "GiB", "0", "1e30", "inf",
                           "nan", "99999999TiB", "0x10"})
    EXPECT_THROW(parse_size("--memory", text), UsageError) << text;
}

TEST(OptionValues, Shapes) {
  const Shape shape = parse_shape("--shape", "0x5", "");
  EXPECT_EQ(shape.m, 0);
  EXPECT_EQ(shape.n, 5);
  EXPECT_TRUE(shape.leading.empty());
  for (const char* text : {"", "5", "5x", "x5", "5x-1", "axb", "5x5x", "5 x 5", "5X5", "1.5x2"})
    EXPECT_THROW(parse_shape("--shape", text, ""), UsageError) << text;
  EXPECT_THROW(parse_shape("--shape", "4000000000x4000000000", ""), LimitError);
  EXPECT_THROW(parse_shape("--shape", "99999999999999999999x1", ""), UsageError);
}

TEST(OptionValues, Numbers) {
  EXPECT_EQ(parse_whole("--threads", "16", 1, 4096), 16);
  for (const char* text : {"", "0", "4097", "1.5", "x", "+3", " 3", "1e2"})
    EXPECT_THROW(parse_whole("--threads", text, 1, 4096), UsageError) << text;
  EXPECT_EQ(parse_number("--cond", "1e6", 1), 1e6);
  for (const char* text : {"", "0.5", "nan", "inf", "1,5", "x"})
    EXPECT_THROW(parse_number("--cond", text, 1), UsageError) << text;
}

/// A command line that exits with 2, and what it prints to standard error.
struct Mistake {
  std::vector<std::string> arguments;
  std::string message;
};

const std::string factor_hint = "\nhint: qrtool factor --help lists the options\n";
const std::string generate_hint = "\nhint: qrtool generate --help lists the options\n";
const std::string commands_hint =
    "\nhint: the commands are factor, solve, append, apply, verify, generate, info, devices, "
    "bench, help\n";

const std::vector<Mistake> mistakes{
    {{"factro", "a", "b"}, "unknown command 'factro'; did you mean 'factor'?" + commands_hint},
    {{"a.h5", "b.h5"},
     "a command is missing before 'a.h5'\nhint: qrtool factor a.h5 b.h5, for example; " +
         commands_hint.substr(commands_hint.find("the"))},
    {{"help", "verfy"}, "unknown command 'verfy'; did you mean 'verify'?" + commands_hint},
    {{"--quiet"}, "a command is missing" + commands_hint},
    {{"--versoin"}, "unknown option '--versoin'; did you mean '--version'?\n"},
    {{"factor", "a", "b", "--forse"},
     "unknown option '--forse'; did you mean '--force'?" + factor_hint},
    {{"factor", "a", "b", "--zzzzzz"}, "unknown option '--zzzzzz'" + factor_hint},
    {{"factor", "a", "b", "-x"}, "unknown option '-x'" + factor_hint},
    {{"factor", "a", "b", "-qx"}, "unknown option '-x'" + factor_hint},
    {{"factor", "a", "b", "--mod=r"},
     "unknown option '--mod'; did you mean '--mode'?" + factor_hint},
    {{"factor", "a", "b", "--all"}, "unknown option '--all'" + factor_hint},
    {{"factor", "a", "b", "\x1b[31m"}, "unexpected argument '\\x1b[31m'" + factor_hint},
    {{"factor"}, "factor: IN is missing" + factor_hint},
    {{"factor", "a"}, "factor: OUT is missing" + factor_hint},
    {{"factor", "a", "b", "c"}, "unexpected argument 'c'" + factor_hint},
    {{"factor", "a", "b", "--mode"}, "option '--mode' needs a value" + factor_hint},
    {{"factor", "a", "b", "--mode="}, "option '--mode' needs a value" + factor_hint},
    {{"factor", "--dataset", "--force", "a", "b"},
     "option '--dataset' needs a value" + factor_hint},
    {{"factor", "a", "b", "--force=yes"}, "option '--force' takes no value" + factor_hint},
    {{"factor", "a", "b", "--mode", "reducd"},
     "--mode: 'reducd' is not one of reduced, complete, r, raw; did you mean 'reduced'?\n"},
    {{"factor", "a", "b", "--sign", "minus"}, "--sign: 'minus' is not one of positive, lapack\n"},
    {{"factor", "a", "b", "--precision", "f32"},
     "--precision: 'f32' is not one of input, single, double, mixed\n"},
    {{"factor", "a", "b", "--precision", "mixed", "--arithmetic", "strict"},
     "--precision mixed contradicts --arithmetic strict\nhint: mixed multiplies in half precision; "
     "leave one of them away\n"},
    {{"factor", "a", "b", "--mode", "raw", "--sign", "positive"},
     "--sign positive contradicts --mode raw, which has LAPACK's signs\nhint: leave --sign away\n"},
    {{"factor", "a", "b", "--memory", "lots"},
     "--memory: 'lots' is not a size; allowed are for example 512MiB, 2GiB, 1.5GB and plain "
     "bytes\n"},
    {{"factor", "a", "b", "--threads", "0"},
     "--threads: '0' is not a whole number from 1 to 4096\n"},
    {{"factor", "a", "-"},
     "OUT - is R alone, on standard output\nhint: give --mode r, or name a file\n"},
    {{"factor", "a", "/dev/stdout"}, "OUT cannot be standard output\nhint: name a file\n"},
    {{"verify", "a", "-"},
     "OUT holds the factors and cannot be standard input\nhint: name a file\n"},
    {{"generate", "a.h5"},
     "generate: --shape is missing\nhint: for example --shape 1000x64x32: 1000 matrices of 64 rows "
     "and 32 columns\n"},
    {{"generate", "a.h5", "--shape", "64"},
     "--shape: '64' is not a shape; allowed are MxN and BxMxN, for example 1000x64x32 for 1000 "
     "matrices of 64 rows and 32 columns\n"},
    {{"generate", "--shape", "3x3"}, "generate: OUT is missing" + generate_hint},
    {{"generate", "a.h5", "--shape", "3x3", "--seed", "-1"},
     "--seed: '-1' is not a whole number of at least 0\n"},
    {{"generate", "a.h5", "--shape", "3x3", "--special"}, "--special is for --kind haar alone\n"},
    {{"generate", "a.h5", "--shape", "4x3", "--special", "--kind", "haar"},
     "--special is for square matrices, not 4x3\n"},
    {{"generate", "a.h5", "--shape", "3x4", "--kind", "haar"},
     "--kind haar: 3x4 has more columns than rows; they cannot be orthonormal\n"},
};

TEST(CommandLine, MistakesAreNamedInOurWords) {
  for (const Mistake& mistake : mistakes) {
    const ToolResult result = run_tool(mistake.arguments);
    EXPECT_EQ(result.err, "qrtool: " + mistake.message);
    EXPECT_EQ(result.exit_code, 2) << mistake.message;
    EXPECT_EQ(result.out, "");
  }
}

TEST(CommandLine, UnknownKindListsThemAll) {
  const ToolResult result = run_tool({"generate", "a.h5", "--shape", "3x3", "--kind", "guass"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("did you mean 'gauss'?"), std::string::npos);
  for (const MatrixKind& kind : matrix_kinds())
    EXPECT_NE(result.err.find(kind.name), std::string::npos) << kind.name;
}

TEST(Help, BareToolShowsTheWayAndExitsWith2) {
  const ToolResult result = run_tool({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_LE(std::count(result.err.begin(), result.err.end(), '\n'), 17);
  for (const std::string& name : command_names)
    EXPECT_NE(result.err.find("qrtool " + name), std::string::npos) << name;
}

TEST(Help, IsAsked) {
  for (const std::string& name : command_names) {
    const ToolResult result = run_tool({name, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(result.out.starts_with("usage: qrtool " + name)) << result.out;
    EXPECT_EQ(run_tool({"help", name}).out, result.out);
    EXPECT_EQ(run_tool({name, "x", "-h", "--mode", "wrong"}).out, result.out) << "help comes first";
    EXPECT_EQ(run_tool({"--help", name}).out, result.out);
  }
  EXPECT_EQ(run_tool({"--help"}).out, run_tool({"help"}).out);
  EXPECT_EQ(run_tool({"--help"}).exit_code, 0);
}

TEST(Help, FitsATerminal) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"help"},
                                                                     {"help", "factor"},
                                                                     {"help", "append"},
                                                                     {"help", "apply"},
                                                                     {"help", "verify"},
                                                                     {"help", "generate"}}) {
    const std::string text = run_tool(arguments).out;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      EXPECT_LE(text.find('\n', begin) - begin, 80u) << text.substr(begin, 100);
  }
}

TEST(Help, Version) {
  const ToolResult result = run_tool({"--version"});
  const testing::Matcher<std::string> expected =
      testing::MatchesRegex(R"(qrtool [0-9]+\.[0-9]+\.[0-9]+ \(HDF5 1\.[0-9.]+, Eigen 3\.[0-9.]+\))"
                            "\n");
  EXPECT_TRUE(expected.Matches(result.out)) << result.out;
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(run_tool({"--version", "--json"}).out.find("\"qrtool.version/1\""), std::string::npos);
}

/// Returns what looks like "--word" or "--several-words".
std::set<std::string> long_options(const std::string& text) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && text[at] >= 'a' && text[at] <= 'z';
  };
  std::set<std::string> options;
  for (std::size_t at = text.find("--"), end = 0; at != std::string::npos;
       at = text.find("--", end)) {
    end = at + 2;
    while (is_letter(end) || (end > at + 2 && text[end] == '-' && is_letter(end + 1))) ++end;
    if (end > at + 2)
      options.insert(text.substr(at, end - at));
    else
      end = at + 1;
  }
  return options;
}

/// Returns the words of `COMPREPLY` after the user typed `line` and pressed Tab.
std::set<std::string> complete(const std::string& line) {
  const std::string script = QRTOOL_SOURCE_DIR "/app/package/qrtool.bash";
  const std::string command = "PATH=$(dirname " QRTOOL_BINARY "):$PATH bash -c 'source " + script +
                              "; COMP_WORDS=(" + line + " \"\"); [[ \"" + line +
                              "\" == *- ]] && COMP_WORDS=(" + line +
                              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _qrtool; "
                              "printf \"%s\\n\" \"${COMPREPLY[@]}\"'";
  std::set<std::string> words;
  FILE* pipe = popen(command.c_str(), "r");
  for (char word[256]; std::fgets(word, sizeof word, pipe) != nullptr;)
    words.insert(std::string(word, std::strcspn(word, "\n")));
  pclose(pipe);
  return words;
}

TEST(Completion, OffersExactlyTheOptionsOfTheHelp) {
  for (const std::string& name : command_names) {
    const std::string help = run_tool({"help", name}).out;
    const std::size_t list = help.find("\n  OUT ");
    EXPECT_EQ(complete("qrtool " + name + " -"), long_options(help.substr(list))) << name;
  }
}

TEST(Completion, OffersCommandsAndValues) {
  EXPECT_EQ(complete("qrtool"),
            (std::set<std::string>{"factor", "solve", "append", "apply", "verify", "generate",
                                   "info", "devices", "bench", "help", "--help", "--version"}));
  EXPECT_EQ(complete("qrtool factor --mode"),
            (std::set<std::string>{"reduced", "complete", "r", "raw"}));
  std::set<std::string> kinds{"haar"};
  for (const MatrixKind& kind : matrix_kinds()) kinds.emplace(kind.name);
  EXPECT_EQ(complete("qrtool generate --kind"), kinds);
}

}  // namespace
}  // namespace qrtool::parse_test
