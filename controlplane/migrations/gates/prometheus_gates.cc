// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/gates/prometheus_gates.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <unordered_map>
#include <utility>

#include "controlplane/migration/plan/gate.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::migrations {
namespace {

using migration::Outcome;

// Longest part of a gate and of a series' labels in a verdict: texts for people have a bound.
constexpr size_t kLongestPart = 200;

std::string PartOf(const std::string& text) {
  return text.size() <= kLongestPart ? ForeignText(text)
                                     : ForeignText(text.substr(0, kLongestPart)) + "...";
}

GateVerdict Inconclusive(const std::string& gate, const std::string& why) {
  return {Outcome::kInconclusive, "gate " + PartOf(gate) + ": " + why};
}

GateVerdict NotANumber(const std::string& gate, const std::string& labels) {
  return Inconclusive(gate, "its left side is not a number " + PartOf(labels));
}

StatusOr<std::string> TokenOf(const std::string& file) {
  if (file.empty()) return std::string();
  std::ifstream in(file);
  std::string token;
  std::getline(in, token);
  token.erase(token.find_last_not_of(" \t\r\n\v\f") + 1);
  if (token.empty()) return Status(EACCES, file + " holds no token");
  return token;
}

}  // namespace

kubeapi::HttpUrl ReadPrometheusUrl(const std::string& url, std::string& problem) {
  kubeapi::HttpUrl read = kubeapi::ReadHttpUrl(url, problem);
  while (read.path.ends_with('/')) read.path.pop_back();
  return read;
}

GateVerdict Judge(const std::string& gate, const PrometheusAnswer& answer,
                  const std::optional<PrometheusAnswer>& left) {
  if (!answer.problem.empty()) return Inconclusive(gate, answer.problem);
  if (answer.samples.empty()) return Inconclusive(gate, "no data");
  std::unordered_map<std::string_view, double> measured;
  std::optional<std::string_view> nan;
  if (left.has_value()) {
    for (const Sample& sample : left->samples) {
      measured.emplace(sample.labels, sample.value);
      if (std::isnan(sample.value) && !nan.has_value()) nan = sample.labels;
    }
  }
  GateVerdict verdict;
  for (const Sample& sample : answer.samples) {
    if (sample.value == 1) continue;
    const auto at = measured.find(sample.labels);
    const bool decides = at == measured.end() ? !nan.has_value() : !std::isnan(at->second);
    if (decides) {
      return {Outcome::kFailed, "gate " + PartOf(gate) + " does not hold " + PartOf(sample.labels)};
    }
    if (verdict.outcome == Outcome::kDone)
      verdict = NotANumber(gate, std::string(at == measured.end() ? *nan : at->first));
  }
  return verdict;
}

PrometheusGates::PrometheusGates(PrometheusSettings settings) : settings_(std::move(settings)) {
  if (!IsConfigured()) return;
  std::string problem;
  server_ = ReadPrometheusUrl(settings_.url, problem);
  server_.ca_file = settings_.ca_file;
  thread_ = std::thread([this] { Run(); });
}

PrometheusGates::~PrometheusGates() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void PrometheusGates::Evaluate(std::vector<std::string> gates,
                               std::function<void(GateVerdict)> done) {
  std::string refusal;
  if (!IsConfigured()) {
    refusal = "this controller has no Prometheus (prometheus.url)";
  } else {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kMostWaiting) {
      waiting_.push_back({std::move(gates), std::move(done)});
      changed_.notify_one();
      return;
    }
    refusal = "too many gates wait for Prometheus";
  }
  done({Outcome::kInconclusive, refusal});
}

std::optional<PrometheusGates::Round> PrometheusGates::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
  if (stopping_) return std::nullopt;
  Round round = std::move(waiting_.front());
  waiting_.pop_front();
  return round;
}

void PrometheusGates::Run() {
  while (auto round = Next()) {
    GateVerdict verdict = VerdictOn(round->gates);
    if (!stopping_) round->done(std::move(verdict));
  }
}

GateVerdict PrometheusGates::VerdictOn(const std::vector<std::string>& gates) const {
  const TimePoint deadline = std::chrono::steady_clock::now() + settings_.round_limit;
  GateVerdict worst;
  for (const std::string& gate : gates) {
    bool unreachable = false;
    GateVerdict verdict = VerdictOn(gate, deadline, unreachable);
    if (verdict.outcome == Outcome::kFailed) return verdict;
    if (worst.outcome == Outcome::kDone) worst = std::move(verdict);
    // The rounds of other migrations wait for this one.
    if (unreachable) return worst;
  }
  return worst;
}

GateVerdict PrometheusGates::VerdictOn(const std::string& gate, TimePoint deadline,
                                       bool& unreachable) const {
  std::string problem;
  const migration::Gate read = migration::ReadGate(gate, problem);
  if (!problem.empty()) return Inconclusive(gate, problem);
  const PrometheusAnswer answer = Ask(read.query, deadline);
  unreachable = answer.unreachable;
  GateVerdict first = Judge(gate, answer, std::nullopt);
  if (first.outcome != Outcome::kFailed) return first;
  return Judge(gate, answer, Ask(read.left, deadline));
}

PrometheusAnswer PrometheusGates::Ask(const std::string& query, TimePoint deadline) const {
  const auto token = TokenOf(settings_.token_file);
  if (!token.ok()) return {.problem = token.status().text(), .samples = {}, .unreachable = false};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  if (left <= std::chrono::milliseconds(0)) {
    return {
        .problem = "Prometheus: no time is left for this gate", .samples = {}, .unreachable = true};
  }
  const kubeapi::HttpRequest request{
      .method = "GET", .path = QueryPath(server_.path, query), .content_type = {}, .body = {}};
  auto response = kubeapi::CallUrl(server_, request, token.value(),
                                   std::min(settings_.time_limit, left), stopping_);
  if (!response.ok()) {
    return {
        .problem = "Prometheus: " + response.status().text(), .samples = {}, .unreachable = true};
  }
  return ReadPrometheusAnswer(response->status, response->body);
}

}  // namespace rocegw::migrations
