// SPDX-License-Identifier: Apache-2.0
// events, explain, capture.
#include <fcntl.h>
#include <google/protobuf/util/time_util.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <iostream>
#include <thread>

#include "controlplane/cli/commands/live_state.h"
#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/debug_views.h"
#include "controlplane/cli/views/table.h"
#include "controlplane/cli/whole_blocks.h"
#include "gateway/base/foreign_text.h"
#include "gateway/base/unique_fd.h"
#include "rocegw/admin/v1/gateways.pb.h"
#include "rocegw/admin/v1/pools.pb.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::cli {
namespace {

using gateway::v1::CaptureChunk;
using gateway::v1::CaptureRequest;
using gateway::v1::ExplainRequest;
using gateway::v1::ExplainResponse;
using google::protobuf::util::TimeUtil;

// Subject of a question as typed by the user.
struct Subject {
  std::string gateway;
  std::string pool;
  std::string tenant;
  std::string qp;
  std::string peer;
};

struct ExplainQuery {
  Subject subject;
  std::string during;
};

struct CaptureQuery {
  Subject subject;
  std::string file;
  std::string duration;
  std::string max_bytes;
  std::string count;
  std::string snap_length;
};

// Server of a question: the gateway itself, the controller for a gateway, or the controller for a
// pool on a gateway, which a tenant's administrator may ask.
struct Place {
  std::string gateway;  // "gateways/G"; empty: the connection goes to the gateway
  std::string pool;     // "tenants/T/pools/P"; empty: all
};

CallResult ReadPool(const Subject& subject, std::string& pool) {
  if (!subject.pool.empty())
    return FullName(*FindKind("pools"), subject.pool, subject.tenant, pool);
  if (!subject.tenant.empty()) pool = "tenants/" + ShortName(subject.tenant) + "/pools/-";
  return {};
}

template <typename Request>
CallResult ReadSubject(const Subject& subject, Request& request) {
  std::string pool;
  if (auto result = ReadPool(subject, pool); !result.ok()) return result;
  request.set_pool(pool);
  request.set_peer(subject.peer);
  if (subject.qp.empty()) return {};
  const bool hex = subject.qp.starts_with("0x");
  uint32_t number = 0;
  const char* const end = subject.qp.data() + subject.qp.size();
  const auto read = std::from_chars(subject.qp.data() + (hex ? 2 : 0), end, number, hex ? 16 : 10);
  if (read.ec != std::errc() || read.ptr != end || number == 0) {
    return {kUsage, "--qp: '" + subject.qp + "' is not a queue pair's number (18, 0x12)", {}};
  }
  request.set_qpn(number);
  return {};
}

CallResult OpenPlace(Program& program, const Subject& subject, Place& place) {
  if (auto result = OpenGateway(program, subject.gateway, place.gateway); !result.ok())
    return result;
  return ReadPool(subject, place.pool);
}

// Events ----------------------------------------------------------------------------------------

int Events(Program& program, const std::string& gateway) {
  return GetLive(program, "events", {.gateway = gateway});
}

// Explain ---------------------------------------------------------------------------------------

CallResult Ask(Program& program, const Place& place, const ExplainRequest& explain,
               ExplainResponse& response) {
  response.Clear();
  if (place.gateway.empty())
    return program.rpc().Call("/rocegw.gateway.v1.DebugService/Explain", explain, response);
  if (place.pool.empty()) {
    admin::v1::ExplainGatewayRequest request;
    request.set_name(place.gateway);
    *request.mutable_explain() = explain;
    return program.rpc().Call("/rocegw.admin.v1.Gateways/ExplainGateway", request, response);
  }
  admin::v1::ExplainPoolRequest request;
  request.set_name(place.pool);
  request.set_gateway(place.gateway);
  *request.mutable_explain() = explain;
  return program.rpc().Call("/rocegw.admin.v1.Pools/ExplainPool", request, response);
}

int Explain(Program& program, const ExplainQuery& query) {
  ExplainRequest request;
  if (auto result = ReadSubject(query.subject, request); !result.ok()) return Fail(result);
  std::optional<int64_t> during;
  if (!query.during.empty()) {
    during = ParseDuration(query.during);
    if (!during.has_value())
      return FailUsage("--during: '" + query.during + "' is not a duration (10s, 2m)");
  }
  Place place;
  if (auto result = OpenPlace(program, query.subject, place); !result.ok()) return Fail(result);
  ExplainResponse response;
  if (auto result = Ask(program, place, request, response); !result.ok()) return Fail(result);
  if (during.has_value()) {
    {
      Progress line;
      line.Show("looking for " + query.during);
      std::this_thread::sleep_for(std::chrono::milliseconds(*during));
    }
    const ExplainResponse earlier = response;
    if (auto result = Ask(program, place, request, response); !result.ok()) return Fail(result);
    response = Between(earlier, response);
  }
  if (program.options.format == "json") {
    std::cout << JsonText(response);
  } else if (program.options.format == "yaml") {
    std::cout << YamlText(response);
  } else if (program.options.format == "name") {
    for (const auto& finding : response.findings())
      std::cout << ForeignText(finding.object() + " " + finding.reason()) << "\n";
  } else {
    std::cout << ExplanationView(response, Program::Now());
  }
  return kOk;
}

// Capture ---------------------------------------------------------------------------------------

CallResult ReadCapture(const CaptureQuery& query, CaptureRequest& request) {
  constexpr uint64_t kMostBytes = 1ULL << 30;
  constexpr uint64_t kMostPackets = 1'000'000'000;
  constexpr uint64_t kLongestFrame = 65535;
  if (auto result = ReadSubject(query.subject, request); !result.ok()) return result;
  if (!query.duration.empty()) {
    const auto duration = ParseDuration(query.duration);
    if (!duration.has_value() || *duration == 0 || *duration > 600'000) {
      return {kUsage,
              "--duration: '" + query.duration + "' is not a duration of at most 10m (30s, 2m)",
              {}};
    }
    *request.mutable_duration() = TimeUtil::MillisecondsToDuration(*duration);
  }
  uint64_t bytes = 0;
  uint64_t packets = 0;
  uint64_t snap = 0;
  if (auto r = ReadAmount("--max-bytes", query.max_bytes, Unit::kBytes, kMostBytes, bytes); !r.ok())
    return r;
  if (auto r = ReadAmount("--count", query.count, Unit::kCount, kMostPackets, packets); !r.ok())
    return r;
  if (auto r = ReadAmount("--snaplen", query.snap_length, Unit::kBytes, kLongestFrame, snap);
      !r.ok()) {
    return r;
  }
  request.set_max_bytes(bytes);
  request.set_max_packets(packets);
  request.set_snap_length(static_cast<uint32_t>(snap));
  return {};
}

// Returns 0 or an errno.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// Scope in which Ctrl-C and SIGTERM are only recorded; the second one ends the program as usual.
class Interruption {
 public:
  Interruption() {
    struct sigaction action {};
    action.sa_handler = [](int) { noted_ = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~Interruption() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool noted() { return noted_ != 0; }

 private:
  static inline volatile sig_atomic_t noted_ = 0;
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

CallResult StreamFrom(Program& program, const Place& place, const CaptureRequest& capture,
                      CaptureChunk& chunk, const std::function<bool()>& on_chunk) {
  const Interruption interruption;
  const auto enough = [] { return Interruption::noted(); };
  if (place.gateway.empty()) {
    return program.rpc().Stream("/rocegw.gateway.v1.DebugService/Capture", capture, chunk, on_chunk,
                                enough);
  }
  if (place.pool.empty()) {
    admin::v1::CaptureGatewayRequest request;
    request.set_name(place.gateway);
    *request.mutable_capture() = capture;
    return program.rpc().Stream("/rocegw.admin.v1.Gateways/CaptureGateway", request, chunk,
                                on_chunk, enough);
  }
  admin::v1::CapturePoolRequest request;
  request.set_name(place.pool);
  request.set_gateway(place.gateway);
  *request.mutable_capture() = capture;
  return program.rpc().Stream("/rocegw.admin.v1.Pools/CapturePool", request, chunk, on_chunk,
                              enough);
}

std::string EndText(const gateway::v1::CaptureSummary& summary) {
  std::string text = std::to_string(summary.packets()) + " packets, " + BytesText(summary.bytes()) +
                     ", " + std::to_string(summary.missed()) + " missed";
  switch (summary.end()) {
    case gateway::v1::DURATION_OVER:
      return text + "; the time is over (--duration)";
    case gateway::v1::BYTES_REACHED:
      return text + "; the file is as large as it may be (--max-bytes)";
    case gateway::v1::PACKETS_REACHED:
      return text + "; that many were asked for (--count)";
    default:
      return text + "; the gateway stopped";
  }
}

int Capture(Program& program, const CaptureQuery& query) {
  CaptureRequest request;
  if (auto result = ReadCapture(query, request); !result.ok()) return Fail(result);
  const bool to_stdout = query.file.empty() || query.file == "-";
  if (to_stdout && isatty(STDOUT_FILENO) == 1) {
    return FailUsage("a capture is no text: -w FILE, or pipe it (| tshark -r -)");
  }
  Place place;
  if (auto result = OpenPlace(program, query.subject, place); !result.ok()) return Fail(result);
  UniqueFd file;
  if (!to_stdout) {
    // The file contains payloads of programs, so only its owner may read it.
    file = UniqueFd(open(query.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) return Fail({kFailed, query.file + ": " + std::strerror(errno), {}});
  }
  WholeBlocks blocks;
  CaptureChunk chunk;
  gateway::v1::CaptureSummary summary;
  bool ended = false;
  int error = 0;
  uint64_t bytes = 0;
  CallResult result;
  {
    Progress line;
    line.Show("capture begins");
    result = StreamFrom(program, place, request, chunk, [&] {
      ended = chunk.has_summary();
      if (ended) summary = chunk.summary();
      const std::string_view whole = blocks.Add(chunk.data());
      error = WriteAll(to_stdout ? STDOUT_FILENO : file.get(), whole);
      bytes += whole.size();
      line.Show("captured " + BytesText(bytes));
      return error == 0;
    });
  }
  // The reader, such as `| head`, has read enough.
  if (error == EPIPE) return kOk;
  if (error != 0) {
    return Fail({kFailed, (to_stdout ? "output" : query.file) + ": " + std::strerror(error), {}});
  }
  if (!result.ok()) return Fail(result);
  if (!ended && Interruption::noted()) {
    // Only the end of a capture reports what the gateway missed, and it was not reached.
    std::cerr << blocks.packets() << " packets, " << BytesText(bytes)
              << "; interrupted, the file is good\n";
    return kOk;
  }
  if (!ended)
    return Fail({kPartlyFailed, "the capture ended before its end; what came is good", {}});
  std::cerr << EndText(summary) << "\n";
  return kOk;
}

void AddSubject(CLI::App& command, Subject& subject) {
  command.add_option("-g,--gateway", subject.gateway, "on this gateway of the fleet")
      ->type_name("NAME");
  command.add_option("-p,--pool", subject.pool, "only of this pool: TENANT/POOL")
      ->type_name("POOL");
  command.add_option("-t,--tenant", subject.tenant, "only of this tenant's pools")
      ->type_name("TENANT");
  command.add_option("--qp", subject.qp, "only of this queue pair of the gateway")
      ->type_name("QPN");
  command.add_option("--peer", subject.peer, "only what has to do with this address")
      ->type_name("ADDRESS");
}

}  // namespace

void AddDebugCommands(CLI::App& app, Program& program) {
  const auto gateway = std::make_shared<std::string>();
  CLI::App* const events =
      program.Add(app, "events", "what a gateway has refused, and why, latest last",
                  "  rocegwctl events --gateway host-a\n"
                  "  rocegwctl --local events -o wide\n"
                  "The gateway keeps the latest 256; repetitions are counted. Reasons:\n"
                  "QUOTA_EXCEEDED, PEER_NOT_ALLOWED, IDENTITY_DENIED, ADDRESS_IN_USE, DRAINING,\n"
                  "RESERVE_SHORT, SOCKET_FAILED.",
                  [&program, gateway] { return Events(program, *gateway); });
  events->add_option("-g,--gateway", *gateway, "of this gateway of the fleet")->type_name("NAME");

  const auto explain_query = std::make_shared<ExplainQuery>();
  CLI::App* const explain =
      program.Add(app, "explain", "why something was refused or dropped",
                  "  rocegwctl explain --gateway host-a\n"
                  "  rocegwctl explain --gateway host-a --pool blue/web\n"
                  "  rocegwctl --local explain --qp 0x12 --during 10s\n"
                  "Puts together what stands in the way on one gateway: ports that are down, a\n"
                  "drain, configuration that it rejected, queue pairs in error, limits that are\n"
                  "reached, requests that were refused, packets that were dropped. Counts are\n"
                  "since the gateway started, or with --during of that time. With --pool or\n"
                  "--tenant it needs the rights of a tenant's administrator only, and leaves out\n"
                  "what cannot be told to be the tenant's, such as dropped packets.",
                  [&program, explain_query] { return Explain(program, *explain_query); });
  AddSubject(*explain, explain_query->subject);
  explain->add_option("--during", explain_query->during, "look for so long; only what moves")
      ->type_name("TIME");

  const auto query = std::make_shared<CaptureQuery>();
  CLI::App* const capture =
      program.Add(app, "capture", "packets of a running gateway, as a pcapng file",
                  "  rocegwctl capture --gateway host-a -w host-a.pcapng\n"
                  "  rocegwctl capture --gateway host-a --tenant blue --duration 1m -w b.pcapng\n"
                  "  rocegwctl --local capture --count 100 --snaplen 128 | tshark -r -\n"
                  "Ends when the time is over, the file is full or that many packets came, or\n"
                  "with Ctrl-C; what was written is a good file at any time. Traffic does not\n"
                  "wait for the capture: what it could not keep is counted as missed. With\n"
                  "--pool or --tenant only packets of these queue pairs and addresses, which a\n"
                  "tenant's administrator may see. One for each tenant runs at a time, four in\n"
                  "all. The file holds what programs send: it is made for its owner alone.",
                  [&program, query] { return Capture(program, *query); });
  AddSubject(*capture, query->subject);
  capture->add_option("-w,--write", query->file, "to this file; -: standard output")
      ->type_name("FILE");
  capture->add_option("--duration", query->duration, "for so long (10s), at most 10m")
      ->type_name("TIME");
  capture->add_option("--max-bytes", query->max_bytes, "a file of that size (16MiB), at most 1GiB")
      ->type_name("BYTES");
  capture->add_option("--count", query->count, "that many packets")->type_name("N");
  capture->add_option("--snaplen", query->snap_length, "only the first bytes of each frame")
      ->type_name("BYTES");
}

}  // namespace rocegw::cli
