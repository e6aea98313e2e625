// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/gates/prometheus_answer.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "gateway/base/foreign_text.h"

namespace rocegw::migrations {
namespace {

using nlohmann::json;

constexpr size_t kMostSamples = 10'000;
constexpr size_t kLongestError = 300;

// Reads a value of Prometheus: a string such as "1.5", "NaN" or "+Inf".
std::optional<double> ValueOf(const json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[1].is_string()) return std::nullopt;
  const auto& text = pair[1].get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "+Inf" || text == "Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string LabelsOf(const json& metric) {
  std::string text = "{";
  for (const auto& [name, value] : metric.items()) {
    if (!value.is_string() || name == "__name__") continue;
    if (text.size() > 1) text += ", ";
    text += name + "=" + value.dump();
  }
  return text + "}";
}

PrometheusAnswer Problem(const std::string& text) {
  return {.problem = text, .samples = {}, .unreachable = false};
}

PrometheusAnswer ReadVector(const json& result) {
  PrometheusAnswer answer;
  if (!result.is_array() || result.size() > kMostSamples)
    return Problem("Prometheus's answer has no result, or more than 10,000 series");
  for (const json& series : result) {
    const auto value =
        series.is_object() && series.contains("value") ? ValueOf(series["value"]) : std::nullopt;
    if (!value.has_value() || !series.contains("metric") || !series["metric"].is_object())
      return Problem("Prometheus's answer is not understood");
    answer.samples.push_back({LabelsOf(series["metric"]), *value});
  }
  return answer;
}

}  // namespace

std::string QueryPath(const std::string& base, std::string_view query) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string path = base + "/api/v1/query?query=";
  for (const char byte : query) {
    const auto code = static_cast<unsigned char>(byte);
    const bool plain = (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
                       (code >= 'a' && code <= 'z') || code == '_' || code == '-' || code == '.';
    if (plain) {
      path += byte;
    } else {
      path += {'%', kDigits[code >> 4], kDigits[code & 0xf]};
    }
  }
  return path;
}

PrometheusAnswer ReadPrometheusAnswer(int status, std::string_view body) {
  const json answer = json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("status"))
    return Problem("HTTP status " + std::to_string(status) + ", and no answer of Prometheus");
  if (answer["status"] != "success") {
    const json error = answer.value("error", json());
    return Problem(error.is_string()
                       ? ForeignText(error.get<std::string>().substr(0, kLongestError))
                       : "HTTP status " + std::to_string(status));
  }
  if (!answer.contains("data") || !answer["data"].is_object() ||
      !answer["data"].contains("resultType") || !answer["data"].contains("result"))
    return Problem("Prometheus's answer is not understood");
  const json& data = answer["data"];
  if (data["resultType"] == "vector") return ReadVector(data["result"]);
  if (data["resultType"] != "scalar") return Problem("the result is neither a vector nor a number");
  const auto value = ValueOf(data["result"]);
  if (!value.has_value()) return Problem("Prometheus's answer is not understood");
  return {.problem = {}, .samples = {{"", *value}}, .unreachable = false};
}

}  // namespace rocegw::migrations
