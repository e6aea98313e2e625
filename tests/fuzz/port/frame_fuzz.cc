// SPDX-License-Identifier: Apache-2.0
// Any Ethernet frame through the parsers of a DPDK port: RoCEv2 frames, ARP and neighbour
// discovery. What is accepted must be written back to the same values. Input: the frame.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/port/neighbour/neighbour_protocol.h"
#include "gateway/port/neighbour/own_neighbours.h"

namespace {

using namespace rocegw::port;  // NOLINT(google-build-using-namespace): one file, one purpose
using rocegw::TimePoint;
using rocegw::wire::Gid;
using rocegw::wire::Path;

void Check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

void CheckRoce(std::span<const uint8_t> input, uint16_t ether_type,
               std::span<const uint8_t> network) {
  ParsedFrame frame;
  if (ParseIpUdp(ether_type, network, frame) != FrameVerdict::kRoce) return;
  Check(frame.payload.data() >= input.data() &&
            frame.payload.data() + frame.payload.size() <= input.data() + input.size(),
        "the payload lies in the frame");
  const Path path{.source = frame.meta.source,
                  .destination = frame.meta.destination,
                  .source_port = frame.meta.source_port,
                  .traffic_class = frame.meta.traffic_class,
                  .hop_limit = frame.meta.hop_limit};
  // An IPv6 header may carry mapped IPv4 addresses; written back they would become IPv4.
  if (path.destination.IsV4() != (ether_type == kEtherTypeIpv4)) return;
  std::vector<uint8_t> again(kMaxIpUdpLength + frame.payload.size());
  const size_t headers = WriteIpUdp(path, frame.meta.ip_id, frame.payload.size(), again.data());
  std::copy(frame.payload.begin(), frame.payload.end(),
            again.begin() + static_cast<ptrdiff_t>(headers));
  ParsedFrame second;
  Check(ParseIpUdp(ether_type, std::span(again).first(headers + frame.payload.size()), second) ==
            FrameVerdict::kRoce,
        "what is written parses");
  Check(second.meta.source == frame.meta.source &&
            second.meta.destination == frame.meta.destination &&
            second.meta.source_port == frame.meta.source_port &&
            second.meta.traffic_class == frame.meta.traffic_class &&
            second.meta.ip_id == frame.meta.ip_id &&
            std::equal(second.payload.begin(), second.payload.end(), frame.payload.begin(),
                       frame.payload.end()),
        "to the same values");
}

void CheckNeighbours(std::span<const uint8_t> input) {
  const auto message = ParseNeighbourMessage(input);
  const Gid own = Gid::FromV4(0x0A090001);
  StaticNetwork network{.addresses = {{own, 24, false}}};
  if (message && !message->target.IsZero() && message->target.IsV4() == message->sender.IsV4()) {
    network.addresses.push_back({message->target, 24, false});
  }
  OwnNeighbours table({2, 0, 0, 0, 0, 1}, network);
  std::array<uint8_t, LinkLayer::kMaxFrame> out;
  while (table.TakeFrame(out) != 0) {
  }
  table.HandleFrameAt(TimePoint{1'000'000'000'000}, input);
  size_t frames = 0;
  while (const size_t length = table.TakeFrame(out)) {
    ++frames;
    const auto answer = ParseNeighbourMessage(std::span(out).first(length));
    Check(answer.has_value(), "our answers parse");
    Check(message.has_value() && message->is_request && !answer->is_request &&
              answer->target == message->target,
          "only requests are answered, with what was asked");
  }
  Check(frames <= 1, "one answer at most");
  rocegw::port::MacAddress mac{};
  Check(table.ResolveAt(TimePoint{1'000'000'000'000}, own, {}, mac) == Reach::kOwn,
        "nobody takes our address");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of the exact size, so that reading past the end is noticed.
  const std::vector<uint8_t> frame(data, data + size);
  uint16_t ether_type = 0;
  std::span<const uint8_t> network;
  if (ParseEthernet(frame, ether_type, network)) CheckRoce(frame, ether_type, network);
  CheckNeighbours(frame);
  return 0;
}
