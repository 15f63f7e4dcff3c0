// SPDX-License-Identifier: Apache-2.0
// command_line.hpp: parses one command's arguments and options and prints their help.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/completion.hpp"
#include "app/cli/option_values.hpp"
#include "app/options/print_options.hpp"

namespace qrtool {

using Args = std::vector<std::string>;
/// Receives the text of an option's value.
using Setter = std::function<void(const std::string&)>;

/// The words that follow the program's name on the command line, and the name that it was started
/// by.
struct Invocation {
  std::string program;  // "qrtool", "qrtool-mpi"
  Args args;
};

/// The arguments and options of a command. First declare all of them, then call parse() or help().
class CommandLine {
 public:
  /// `name`: the words before the arguments. `about`: what the command does, and examples.
  CommandLine(std::string name, std::string_view positionals, std::string_view about);
  ~CommandLine();

  /// A required file.
  void positional(const std::string& name, std::string& target, const std::string& help);

  /// An optional file.
  void optional_positional(const std::string& name, std::string& target, const std::string& help);

  /// With the option `name`, every word of the line is one of `files`; at least one must be given.
  void many(const std::string& name, std::vector<std::string>& files);

  void flag(const std::string& names, bool& target, const std::string& help);

  /// Passes the text of the value to `set`. If an option is repeated, the last value counts.
  void value(const std::string& name, const std::string& placeholder, const std::string& help,
             const Setter& set);

  /// As value(), but the option without a value means `usual`.
  void optional_value(const std::string& name, const std::string& placeholder,
                      const std::string& usual, const std::string& help, const Setter& set);

  /// Passes a comma-separated list to `set`. An option that is repeated adds to the list.
  void list(const std::string& name, const std::string& placeholder, const std::string& help,
            const Setter& set);

  /// As value(), but each value of a repeated option is passed to `set`.
  void repeated(const std::string& name, const std::string& placeholder, const std::string& help,
                const Setter& set);

  template <class T, std::size_t N>
  void choice(const std::string& name, T& target, const std::string& help,
              const std::pair<std::string_view, T> (&choices)[N]) {
    std::string names;
    std::vector<Candidate> candidates;
    for (const auto& entry : choices) {
      names += (names.empty() ? "" : ", ") + std::string(entry.first);
      candidates.push_back({std::string(entry.first)});
    }
    value(name, "WORD", help + ": " + names, [name, &target, &choices](const std::string& text) {
      target = choose(name, text, choices);
    });
    suggest(name, [candidates] { return candidates; });
  }

  /// The values that a shell may offer for an option. They are listed when they are needed.
  void suggest(const std::string& name, std::function<std::vector<Candidate>()> list);

  /// If the line does not have the option, but the environment has this variable, its text is
  /// passed to the option's setter, or to `set`.
  void environment(const std::string& name, const char* variable, Setter set = nullptr);

  /// Marks an option that does not change the result, so that each rank of a run may have its own
  /// value.
  void not_deciding(const std::string& name);

  /// Adds a hint for `name`, an option of other programs that this command does not have.
  void elsewhere(std::string_view name, std::string_view instead);

  /// Whether the word is an option whose value is the next word.
  bool takes_next_word(const std::string& word) const;

  /// Returns false if the line asks for help; then no value is set. Errors: UsageError.
  bool parse(Args args);

  /// Returns the options that the line gave, except those that are not deciding, in the order in
  /// which they were declared. Call it after parse().
  std::vector<GivenOption> deciding_options() const;

  std::string help() const;

  /// Returns candidates for the end of a line: values of the option `before`, or options if `typed`
  /// begins one. An empty list means names of files, or that nothing is known.
  std::vector<Candidate> complete(const std::string& before, const std::string& typed) const;

 private:
  struct Parser;

  void take_words(Args extra, const std::string& flag) const;
  std::string flag_before_last(const Args& args) const;
  bool has_many() const;
  UsageError unknown_option(const std::string& arg) const;
  UsageError in_our_words(const std::string& message) const;
  UsageError usage_error(const std::string& what) const;
  void read_environment() const;

  std::string name_, positionals_, about_;
  std::unique_ptr<Parser> parser_;
  std::vector<std::pair<std::string, const std::string*>> required_;
  std::string many_option_;  // empty: the line has no list of files
  std::vector<std::string>* many_ = nullptr;
  std::vector<std::pair<std::string_view, std::string_view>>
      elsewhere_;  // name, what to do instead
};

}  // namespace qrtool
