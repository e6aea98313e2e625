// SPDX-License-Identifier: Apache-2.0
// What a scenario yields: figures with their meaning, lines over time, and tables. Plain values.
#pragma once

#include <string>
#include <vector>

namespace rocegw::sim {

struct Series {
  std::string name;
  std::string unit;        // lines of one unit share a plot
  std::vector<double> at;  // as Report::x says
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
  std::string x = "ms";  // of the series: virtual time
  std::string failure;   // not empty: something is wrong, not slow

  void Add(std::string name, double value, std::string unit) {
    figures.push_back({std::move(name), value, std::move(unit)});
  }
  // The figure of that name; -1 when there is none.
  double Value(const std::string& name) const;
};

// (sum x)^2 / (n sum x^2): 1 when all are equal (Jain, Chiu, Hawe 1984).
double JainIndex(const std::vector<double>& shares);
// Of a copy; `share` from 0 to 1.
double Percentile(std::vector<double> values, double share);
double Mean(const std::vector<double>& values);

std::string Text(const Report& report);
std::string Csv(const Report& report);
// Figures and the failure, as one object.
std::string Json(const Report& report);
// Line plots, one for each unit, one above the other.
std::string Svg(const Report& report, const std::string& title);

}  // namespace rocegw::sim
