// SPDX-License-Identifier: Apache-2.0
// variable.hpp: what the stored numbers of a dataset mean by its attributes, and in which order its
// matrices are stored.
#pragma once

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "io/hdf5/structure/file.hpp"
#include "io/read/reader.hpp"

namespace qrtool::hdf5 {

struct InputFile;

/// How the numbers of a dataset follow from the stored ones:
///     number = stored scale_factor + add_offset, or NaN if stored is a missing value.
struct Variable {
  bool is_single = false;  // floats of 4 bytes or fewer are stored; numbers are float32
  // _Unsigned: the bits of an integer mean the number of the other sign. Numbers then lie between
  // `lowest` and `lowest` + `span`.
  bool reverses_sign = false;
  // Integers of 64 bits are compared by their bits, since float64 does not tell all of them apart;
  // a large one that an attribute gives as a float means all that round to it.
  bool is_long = false, is_unsigned = false;     // stored so; what the numbers are
  std::vector<std::uint64_t> missing_bits = {};  // in the place of the next three
  std::vector<double> missing_rounded = {};
  double lowest = 0, span = 0;
  // Stored numbers, after their sign is reversed, that mean no number.
  std::vector<double> missing = {};                        // _FillValue and missing_value
  std::vector<std::complex<double>> missing_complex = {};  // of complex numbers
  std::optional<double> default_fill = {};  // of netCDF, where there is no _FillValue
  std::optional<double> scale_factor = {}, add_offset = {};
  // The path of a dataset of the same shape that marks the missing numbers; empty if there is none.
  std::string mask = {};
  std::vector<std::string> notes = {};  // what the attributes say and is not applied
  std::string problem = {};             // why the numbers cannot be decoded; empty: they can

  /// Whether every number is the stored one.
  bool is_plain() const;
};

/// The order in which the matrices of a dataset are stored, and the evidence for it.
struct OrderEvidence {
  Order order = Order::automatic;
  std::string reason = {};
};

/// Reads the attributes of netCDF's conventions, which xarray applies to HDF5 files of any program.
/// An attribute that cannot be applied becomes a `problem` or a note. Errors: InputError for a
/// damaged file.
Variable read_variable(const InputFile& file, hid_t dataset);
/// The same of complex numbers: a missing value is complex, or real, and both parts become NaN; the
/// scale is real, and so is the offset.
Variable read_complex_variable(const InputFile& file, hid_t dataset);

/// Adds the missing values of AnnData's groups: -1 in the `codes` of categories, and the `mask`
/// beside `values`. `path` is the path of the dataset. Errors: InputError.
void add_missing_of_group(const InputFile& file, const std::string& path, hid_t dataset,
                          Variable& variable);

/// Whether netCDF, or a program that keeps to its conventions, wrote the dataset.
bool is_netcdf(const InputFile& file, hid_t dataset);

/// Returns the order that marks of the program that wrote the dataset show, or automatic if it has
/// none.
OrderEvidence find_order(const InputFile& file, hid_t dataset);

/// Converts stored numbers to the numbers that they mean. T must hold every stored number exactly:
/// float is only for a variable that `is_single`.
template <class T>
void decode(const Variable& variable, T* numbers, index_t count);
template <class R>
void decode(const Variable& variable, std::complex<R>* numbers, index_t count);

/// Decodes stored integers of 64 bits (`is_long`), in their own place. Returns whether float64 does
/// not hold one of them that is not missing.
bool decode_long(const Variable& variable, double* numbers, index_t count);

/// Replaces integers by their remainders: integer minus the float64 nearest to it.
void take_remainders(const Variable& variable, double* numbers, index_t count);

/// Rounds to float. Returns false if a finite number becomes infinite.
bool narrow(const double* numbers, index_t count, float* out);

/// Returns the conversions that were applied, by the names of variable_names.
TextPairs record_of(const Variable& variable);

}  // namespace qrtool::hdf5
