// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/prometheus_gates.h"

#include <cmath>
#include <fstream>
#include <utility>

#include "controlplane/migration/plan/gate.h"

namespace rocegw::migrations {
namespace {

using migration::Outcome;

GateVerdict Inconclusive(const std::string& gate, const std::string& why) {
  return {Outcome::kInconclusive, "gate " + gate + ": " + why};
}

StatusOr<std::string> TokenOf(const std::string& file) {
  if (file.empty()) return std::string();
  std::ifstream in(file);
  std::string token;
  if (!std::getline(in, token) || token.empty()) return Status(EACCES, file + " holds no token");
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
  for (const Sample& sample : answer.samples) {
    if (sample.value == 1) continue;
    if (left.has_value()) {
      for (const Sample& measured : left->samples) {
        if (std::isnan(measured.value))
          return Inconclusive(gate, "its left side is not a number " + measured.labels);
      }
    }
    return {Outcome::kFailed, "gate " + gate + " does not hold " + sample.labels};
  }
  return {};
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
  GateVerdict worst;
  for (const std::string& gate : gates) {
    GateVerdict verdict = VerdictOn(gate);
    if (verdict.outcome == Outcome::kFailed) return verdict;
    if (worst.outcome == Outcome::kDone) worst = std::move(verdict);
  }
  return worst;
}

GateVerdict PrometheusGates::VerdictOn(const std::string& gate) const {
  std::string problem;
  const migration::Gate read = migration::ReadGate(gate, problem);
  if (!problem.empty()) return Inconclusive(gate, problem);
  const PrometheusAnswer answer = Ask(read.query);
  GateVerdict first = Judge(gate, answer, std::nullopt);
  if (first.outcome != Outcome::kFailed) return first;
  return Judge(gate, answer, Ask(read.left));
}

PrometheusAnswer PrometheusGates::Ask(const std::string& query) const {
  const auto token = TokenOf(settings_.token_file);
  if (!token.ok()) return {.problem = token.status().text(), .samples = {}};
  const kubeapi::HttpRequest request{
      .method = "GET", .path = QueryPath(server_.path, query), .content_type = {}, .body = {}};
  auto response =
      kubeapi::CallUrl(server_, request, token.value(), settings_.time_limit, stopping_);
  if (!response.ok()) return {.problem = "Prometheus: " + response.status().text(), .samples = {}};
  return ReadPrometheusAnswer(response->status, response->body);
}

}  // namespace rocegw::migrations
