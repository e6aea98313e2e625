// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenarios/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tests/sim/oracle/format.h"

namespace rocegw::sim {
namespace {

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

// Returns 1, 2 or 5 times a power of ten, so that about five steps fill `range`.
double NiceStep(double range) {
  const double raw = std::max(range, 1e-12) / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double digit = raw / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

// Returns axis marks from 0 to `most`.
std::vector<double> Marks(double most) {
  const double step = NiceStep(most);
  // A mark that rounding puts slightly beyond the end counts.
  const auto last = static_cast<int>(std::floor(most * 1.0001 / step));
  std::vector<double> marks;
  for (int i = 0; i <= last; ++i) marks.push_back(i * step);
  return marks;
}

constexpr const char* kColors[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                   "#ff7f0e", "#17becf", "#8c564b", "#e377c2"};
constexpr int kWidth = 900;
constexpr int kPlotHeight = 260;
constexpr int kLeft = 80;
constexpr int kRight = 170;
constexpr int kTop = 40;
constexpr int kBottom = 45;
constexpr size_t kNamesShown = 14;

struct Frame {
  double x_most;
  double y_most;
  int top;
  double X(double v) const { return kLeft + (kWidth - kLeft - kRight) * v / x_most; }
  double Y(double v) const {
    return top + kTop + (kPlotHeight - kTop - kBottom) * (1 - v / y_most);
  }
};

std::string Axes(const Frame& frame, const std::string& x, const std::string& unit) {
  std::string out;
  const double bottom = frame.Y(0);
  for (const double v : Marks(frame.y_most)) {
    out += Format("<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/>\n", kLeft,
                  kWidth - kRight, frame.Y(v), frame.Y(v));
    out +=
        Format("<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n", kLeft - 6, frame.Y(v) + 4, v);
  }
  for (const double v : Marks(frame.x_most)) {
    out += Format("<text x='%.1f' y='%.1f' text-anchor='middle'>%g</text>\n", frame.X(v),
                  bottom + 16, v);
  }
  out += Format("<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='black'/>\n", kLeft,
                kWidth - kRight, bottom, bottom);
  out += Format("<text x='%d' y='%.1f' text-anchor='middle'>%s</text>\n", (kWidth - kRight) / 2,
                bottom + 34, Escaped(x).c_str());
  out += Format("<text x='%d' y='%d'>%s</text>\n", kLeft, frame.top + kTop - 12,
                Escaped(unit).c_str());
  return out;
}

std::string Plot(const std::vector<const Series*>& lines, const std::string& x, int top) {
  Frame frame{.x_most = 1e-9, .y_most = 1e-9, .top = top};
  for (const Series* line : lines) {
    for (const double at : line->at) frame.x_most = std::max(frame.x_most, at);
    for (const double value : line->values) frame.y_most = std::max(frame.y_most, value * 1.05);
  }
  std::string out = Axes(frame, x, lines.front()->unit);
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* color = kColors[i % std::size(kColors)];
    out += Format("<polyline fill='none' stroke='%s' stroke-width='1.2' points='", color);
    for (size_t k = 0; k < lines[i]->at.size(); ++k) {
      out += Format("%.1f,%.1f ", frame.X(lines[i]->at[k]), frame.Y(lines[i]->values[k]));
    }
    out += "'/>\n";
    if (i >= kNamesShown) continue;
    const int y = top + kTop + static_cast<int>(i) * 14;
    out += Format("<text x='%d' y='%d' fill='%s'>%s</text>\n", kWidth - kRight + 12, y, color,
                  Escaped(lines[i]->name).c_str());
  }
  return out;
}

}  // namespace

double Report::Value(const std::string& name) const {
  for (const Figure& figure : figures) {
    if (figure.name == name) return figure.value;
  }
  return -1;
}

double JainIndex(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(at, 1, values.size()) - 1];
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::string Text(const Report& report) {
  std::string out;
  std::vector<size_t> widths;
  for (const auto& row : report.table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : report.table) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += Format("%s%*s", i == 0 ? "" : "  ", static_cast<int>(widths[i]), row[i].c_str());
    }
    out += "\n";
  }
  for (const Figure& figure : report.figures) {
    out += Format("%-34s %12.6g %s\n", figure.name.c_str(), figure.value, figure.unit.c_str());
  }
  if (!report.failure.empty()) out += "FAILED: " + report.failure + "\n";
  return out;
}

std::string Csv(const Report& report) {
  std::string out;
  for (const auto& row : report.table) {
    for (size_t i = 0; i < row.size(); ++i) out += (i == 0 ? "" : ",") + row[i];
    out += "\n";
  }
  for (const Figure& figure : report.figures) {
    out += Format("figure,%s,%.9g,%s\n", figure.name.c_str(), figure.value, figure.unit.c_str());
  }
  for (const Series& line : report.series) {
    for (size_t i = 0; i < line.at.size(); ++i) {
      out += Format("series,%s,%s,%.6f,%.9g\n", line.name.c_str(), line.unit.c_str(), line.at[i],
                    line.values[i]);
    }
  }
  return out;
}

std::string Json(const Report& report) {
  std::string out = "{";
  for (const Figure& figure : report.figures) {
    out += Format("\"%s\": %.17g, ", figure.name.c_str(), figure.value);
  }
  std::string failure;
  for (const char c : report.failure) failure += c == '"' || c == '\\' ? '\'' : c;
  return out + "\"failure\": \"" + failure + "\"}";
}

std::string Svg(const Report& report, const std::string& title) {
  std::vector<std::string> units;
  for (const Series& line : report.series) {
    if (std::find(units.begin(), units.end(), line.unit) == units.end()) {
      units.push_back(line.unit);
    }
  }
  const int height = 40 + static_cast<int>(units.size()) * kPlotHeight;
  std::string out = Format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' "
      "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
      kWidth, height);
  out += Format("<text x='%d' y='24' font-size='15'>%s</text>\n", kLeft, Escaped(title).c_str());
  for (size_t i = 0; i < units.size(); ++i) {
    std::vector<const Series*> lines;
    for (const Series& line : report.series) {
      if (line.unit == units[i]) lines.push_back(&line);
    }
    out += Plot(lines, report.x, 30 + static_cast<int>(i) * kPlotHeight);
  }
  return out + "</svg>\n";
}

}  // namespace rocegw::sim
