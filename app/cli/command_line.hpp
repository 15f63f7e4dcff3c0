// SPDX-License-Identifier: Apache-2.0
// command_line.hpp: parses one command's arguments and options and prints their help.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/option_values.hpp"

namespace qrtool {

using Args = std::vector<std::string>;
/// Takes the text of an option's value.
using Setter = std::function<void(const std::string&)>;

/// First declare all arguments and options, then call parse() or help(). The help lists what was
/// declared.
class CommandLine {
 public:
  /// `about`: what the command does, and examples.
  CommandLine(std::string_view name, std::string_view positionals, std::string_view about);
  ~CommandLine();

  /// A file that must be given.
  void positional(const std::string& name, std::string& target, const std::string& help);

  void flag(const std::string& names, bool& target, const std::string& help);

  /// Passes the text of the value to `set`; where an option is repeated, the last value counts.
  void value(const std::string& name, const std::string& placeholder, const std::string& help,
             const Setter& set);

  /// As value(), but the name alone has the value `usual`.
  void optional_value(const std::string& name, const std::string& placeholder,
                      const std::string& usual, const std::string& help, const Setter& set);

  /// Passes a comma-separated list to `set`. An option that is repeated adds to the list.
  void list(const std::string& name, const std::string& placeholder, const std::string& help,
            const Setter& set);

  /// As value(), but an option that is repeated passes each of its values to `set`.
  void repeated(const std::string& name, const std::string& placeholder, const std::string& help,
                const Setter& set);

  template <class T, std::size_t N>
  void choice(const std::string& name, T& target, const std::string& help,
              const std::pair<std::string_view, T> (&choices)[N]) {
    std::string names;
    for (const auto& entry : choices)
      names += (names.empty() ? "" : ", ") + std::string(entry.first);
    value(name, "WORD", help + ": " + names, [name, &target, &choices](const std::string& text) {
      target = choose(name, text, choices);
    });
  }

  /// Returns false where the line asks for help; then no value is set. Errors: UsageError.
  bool parse(Args args);

  std::string help() const;

 private:
  struct Parser;

  void refuse_extra(Args extra) const;
  UsageError unknown_option(const std::string& arg) const;
  UsageError in_our_words(const std::string& message) const;
  UsageError usage_error(const std::string& what) const;

  std::string name_, positionals_, about_;
  std::unique_ptr<Parser> parser_;
  std::vector<std::pair<std::string, const std::string*>> required_;
};

}  // namespace qrtool
