// SPDX-License-Identifier: Apache-2.0
// Result of a scenario: figures with their meaning, series over time, and tables. Plain values.
#pragma once

#include <string>
#include <vector>

namespace rocegw::sim {

struct Series {
  std::string name;
  std::string unit;        // series of one unit share a plot
  std::vector<double> at;  // in the unit of Report::x
  std::vector<double> values;
};

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
};

struct Report {
  std::vector<Figure> figures;
  std::vector<Series> series;
  // Rows of a sweep; the first row names the columns, the first column is the x axis.
  std::vector<std::vector<std::string>> table;
  std::string x = "ms";  // x axis of the series: virtual time
  std::string failure;   // not empty: a result is wrong, not only slow

  void Add(std::string name, double value, std::string unit) {
    figures.push_back({std::move(name), value, std::move(unit)});
  }
  // Returns the figure of that name; -1 if there is none.
  double Value(const std::string& name) const;
};

// Returns (sum x)^2 / (n sum x^2): 1 if all are equal (Jain, Chiu, Hawe 1984).
double JainIndex(const std::vector<double>& shares);
// Sorts a copy and returns its quantile; `share` from 0 to 1.
double Percentile(std::vector<double> values, double share);
double Mean(const std::vector<double>& values);

std::string Text(const Report& report);
std::string Csv(const Report& report);
// Returns the figures and the failure as one object.
std::string Json(const Report& report);
// Returns line plots, one per unit, below each other.
std::string Svg(const Report& report, const std::string& title);

}  // namespace rocegw::sim
