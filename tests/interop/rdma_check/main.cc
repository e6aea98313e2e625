// SPDX-License-Identifier: Apache-2.0
// rdma_check: exercises two RDMA stacks against each other and compares every byte. An ordinary
// verbs program: it links the system's libibverbs and librdmacm and knows nothing about what is
// behind them.
//   rdma_check server [--listen ADDRESS] [--port N]
//   rdma_check client ADDRESS [--port N] [--connect cm|socket] [--wait poll|event] [--mtu N] [--qps
//   N] [--seed N]
//                     [--cases GLOB,...] [--direction both|client|server]
//   rdma_check list
// The client prints a line `case ID ok (N ms)` or `case ID FAIL reason` for each case and `N cases,
// N failed` at the end, and exits with 0 when all are ok, 1 when not, 2 when it could not start.
// The server serves until it is ended.
#include <fnmatch.h>
#include <getopt.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

constexpr uint16_t kDefaultPort = 7480;

struct Arguments {
  std::string address;
  uint16_t port = kDefaultPort;
  std::string cases = "*";
  std::string direction = "both";
  Settings settings;
};

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (auto&& group : {TransferCases(), AtomicCases(), FaultCases(), DatagramCases(),
                       ConnectCases(), QueueCases(), WindowCases(), MemoryCases(),
                       LargeMemoryCases(), PlacementCases(), EceCases(), EndlessCases()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

bool Matches(const std::string& globs, const std::string& name) {
  if (name.starts_with("endless")) return globs == name;
  // Few stacks have the first, few hosts the memory for the others.
  for (const char* const group : {"placement", "large"}) {
    if (name.starts_with(group) && !globs.starts_with(group)) return false;
  }
  std::istringstream in(globs);
  std::string glob;
  while (std::getline(in, glob, ',')) {
    if (fnmatch(glob.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

// Runs one side of a case; returns "" or why it failed.
std::string RunCase(Session& session, const Case& chosen, bool by_client) {
  std::string verdict;
  try {
    chosen.run(session, by_client);
  } catch (const PeerFailure&) {
    verdict = "peer failed first";
  } catch (const Failure& failure) {
    verdict = failure.what();
  }
  return verdict;
}

void Serve(int fd) {
  Session session{.control = Control(fd), .is_client = false, .settings = {}};
  session.settings = Settings::Parse(session.control.Expect("settings"));
  const std::vector<Case> all = AllCases();
  std::string kind;
  std::string body;
  while (session.control.Receive(&kind, &body) && kind != "bye") {
    Check(kind == "case", "control message '", kind, "' where a case was due");
    std::istringstream in(body);
    size_t index = 0;
    bool by_client = false;
    in >> index >> by_client;
    Check(!in.fail() && index < all.size(), "unknown case");
    const std::string verdict = RunCase(session, all[index], by_client);
    session.control.End(verdict);
  }
}

int Server(const Arguments& arguments) {
  const int listener = Control::Listen(arguments.address, arguments.port);
  std::cout << "rdma_check: serving on port " << arguments.port << std::endl;
  while (true) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) continue;
    try {
      Serve(fd);
    } catch (const Failure& failure) {
      std::cout << "rdma_check: session ended: " << failure.what() << std::endl;
    }
  }
}

int Client(const Arguments& arguments) {
  Session session{.control = Control(Control::Connect(arguments.address, arguments.port)),
                  .is_client = true,
                  .settings = arguments.settings};
  session.control.Send("settings", session.settings.Format());
  const std::vector<Case> all = AllCases();
  const Needs offered = session.settings.use_cm ? Needs::kCm : Needs::kSocket;
  uint32_t run = 0;
  uint32_t failed = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].needs != Needs::kAnything && all[i].needs != offered) continue;
    for (const bool by_client : {true, false}) {
      if (!all[i].both_directions && !by_client) continue;
      if (all[i].both_directions && arguments.direction != "both" &&
          arguments.direction != (by_client ? "client" : "server")) {
        continue;
      }
      const std::string id =
          all[i].name + (all[i].both_directions ? (by_client ? "/client" : "/server") : "");
      if (!Matches(arguments.cases, id)) continue;
      const auto start = std::chrono::steady_clock::now();
      session.control.Send("case", std::to_string(i) + (by_client ? " 1" : " 0"));
      const std::string ours = RunCase(session, all[i], by_client);
      const std::string theirs = session.control.End(ours);
      ++run;
      if (ours.empty() && theirs.empty()) {
        const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - start);
        std::cout << "case " << id << " ok (" << time.count() << " ms)" << std::endl;
        continue;
      }
      ++failed;
      std::cout << "case " << id << " FAIL client: " << (ours.empty() ? "ok" : ours)
                << "; server: " << (theirs.empty() ? "ok" : theirs) << std::endl;
    }
  }
  session.control.Send("bye");
  std::cout << run << " cases, " << failed << " failed" << std::endl;
  Check(run > 0, "no case matches ", arguments.cases);
  return failed == 0 ? 0 : 1;
}

int Usage() {
  std::cerr
      << "usage: rdma_check server [--listen ADDRESS] [--port N]\n"
         "       rdma_check client ADDRESS [--port N] [--connect cm|socket] [--wait poll|event]\n"
         "                  [--mtu N] [--qps N] [--seed N] [--cases GLOB,...]\n"
         "                  [--direction both|client|server]\n"
         "       rdma_check list\n";
  return 2;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  static const std::array<option, 11> kOptions = {{{"listen", required_argument, nullptr, 'l'},
                                                   {"port", required_argument, nullptr, 'p'},
                                                   {"connect", required_argument, nullptr, 'c'},
                                                   {"wait", required_argument, nullptr, 'w'},
                                                   {"mtu", required_argument, nullptr, 'm'},
                                                   {"qps", required_argument, nullptr, 'q'},
                                                   {"seed", required_argument, nullptr, 's'},
                                                   {"cases", required_argument, nullptr, 'C'},
                                                   {"direction", required_argument, nullptr, 'd'},
                                                   {nullptr, 0, nullptr, 0}}};
  int letter = 0;
  while ((letter = getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1) {
    const std::string value = optarg != nullptr ? optarg : "";
    switch (letter) {
      case 'l':
        arguments.address = value;
        break;
      case 'p':
        arguments.port = static_cast<uint16_t>(std::stoul(value));
        break;
      case 'c':
        if (value != "cm" && value != "socket") return Usage();
        arguments.settings.use_cm = value == "cm";
        break;
      case 'w':
        if (value != "poll" && value != "event") return Usage();
        arguments.settings.use_events = value == "event";
        break;
      case 'm':
        arguments.settings.mtu = static_cast<uint32_t>(std::stoul(value));
        break;
      case 'q':
        arguments.settings.qps = static_cast<uint32_t>(std::stoul(value));
        break;
      case 's':
        arguments.settings.seed = std::stoull(value);
        break;
      case 'C':
        arguments.cases = value;
        break;
      case 'd':
        if (value != "both" && value != "client" && value != "server") return Usage();
        arguments.direction = value;
        break;
      default:
        return Usage();
    }
  }
  const std::string role = optind < argc ? argv[optind] : "";
  if (role == "list") {
    for (const Case& each : AllCases()) std::cout << each.name << "\n";
    return 0;
  }
  if (role == "server") return Server(arguments);
  if (role != "client" || optind + 1 >= argc) return Usage();
  arguments.address = argv[optind + 1];
  return Client(arguments);
}

}  // namespace
}  // namespace rocegw::interop

int main(int argc, char** argv) {
  try {
    return rocegw::interop::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "rdma_check: " << error.what() << "\n";
    return 2;
  }
}
