// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/fleet_key_file.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "agent/reconcile/unary_call.h"
#include "gateway/disk/durable_file.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"

namespace rocegw::agent {
namespace {

constexpr std::chrono::seconds kDeadline(20);
constexpr Duration kRetry = Seconds(5);
constexpr size_t kKeyLength = 16;
constexpr int kMostKeys = 3;  // that a gateway takes
constexpr int64_t kShortestPause = 1;
constexpr int64_t kLongestPause = 24 * 3600;

std::string HexOf(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<uint8_t>(byte);
    text += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return text;
}

int64_t SecondsNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

FleetKeyFile::FleetKeyFile(ControlLoop& loop, std::string path, std::string gateway,
                           std::function<std::shared_ptr<grpc::Channel>()> channel,
                           std::function<void(int64_t)> taken)
    : loop_(loop),
      path_(std::move(path)),
      gateway_(std::move(gateway)),
      channel_(std::move(channel)),
      taken_(std::move(taken)) {
  if (!path_.empty()) AskAfter(Duration{0});
}

FleetKeyFile::~FleetKeyFile() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void FleetKeyFile::AskAfter(Duration pause) {
  timer_ = loop_.At(ControlLoop::Now() + pause, [this] { Ask(); });
}

void FleetKeyFile::Ask() {
  fleet::v1::GetFleetKeysRequest request;
  request.set_gateway(gateway_);
  StartUnary<fleet::v1::GetFleetKeysResponse>(
      loop_, fleet::v1::NodeService::NewStub(channel_()), std::move(request), In(kDeadline),
      [](auto& stub, auto* context, auto* wanted, auto* response, auto done) {
        stub.async()->GetFleetKeys(context, wanted, response, std::move(done));
      },
      [this, alive = alive_](const grpc::Status& answered,
                             const fleet::v1::GetFleetKeysResponse& answer) {
        if (!*alive) return;
        const Status status = answered.ok() ? Take(answer) : Status(EIO, answered.error_message());
        if (!status.ok() && status.text() != last_problem_)
          spdlog::warn("keys of the fleet are not replaced: {}", status.text());
        last_problem_ = status.text();
        if (!status.ok()) return AskAfter(kRetry);
        AskAfter(
            Seconds(std::clamp(answer.refresh_after().seconds(), kShortestPause, kLongestPause)));
      });
}

StatusOr<std::string> FleetKeyFile::TextOf(const fleet::v1::GetFleetKeysResponse& answer) {
  if (answer.keys().empty() || answer.keys_size() > kMostKeys)
    return Status(EINVAL, "the controller sent " + std::to_string(answer.keys_size()) + " keys");
  std::string text = "# Written by rocegw-agent. The first key makes tags.\n";
  for (const std::string& key : answer.keys()) {
    if (key.size() != kKeyLength)
      return Status(EINVAL, "the controller sent a key of wrong length");
    text += HexOf(key) + "\n";
  }
  return text;
}

Status FleetKeyFile::Take(const fleet::v1::GetFleetKeysResponse& answer) {
  auto text = TextOf(answer);
  if (!text.ok()) return text.status();
  auto current = ReadSmallFile(path_);
  if (!current.ok() || *current != *text) {
    if (Status status = WriteDurably(path_, *text, 0600); !status.ok()) return status;
    spdlog::info("keys of the fleet are replaced in {}", path_);
  }
  taken_(SecondsNow());
  return OkStatus();
}

}  // namespace rocegw::agent
