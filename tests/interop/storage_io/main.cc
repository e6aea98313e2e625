// SPDX-License-Identifier: Apache-2.0
// storage_io: a storage target and an initiator in the request pattern of NVMe over Fabrics, over
// RDMA or TCP. Ordinary programs of libibverbs and librdmacm; both ends poll.
//   storage_io target|initiator ADDRESS [--tcp] [--port N] [--depth N] [--block BYTES]
//              [--writes PERCENT] [--milliseconds N] [--verify]
// The target listens on the address until SIGTERM. Both ends take the same --depth (of the target:
// at least the initiator's), --block and --verify. The initiator prints its figures at the end, and
// exits with 1 if a block was wrong.
#include <getopt.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/interop/storage_io/options.h"
#include "tests/interop/storage_io/rdma_initiator.h"
#include "tests/interop/storage_io/rdma_target.h"
#include "tests/interop/storage_io/tcp.h"

namespace {

using rocegw::storage_io::Options;

volatile std::sig_atomic_t g_stop = 0;

void Stop(int /*signal*/) { g_stop = 1; }

[[noreturn]] void Usage() {
  std::fprintf(stderr,
               "usage: storage_io target|initiator ADDRESS [--tcp] [--port N] [--depth N] "
               "[--block BYTES] [--writes PERCENT] [--milliseconds N] [--verify]\n");
  std::exit(2);
}

Options Parse(int argc, char** argv) {
  constexpr option kOptions[] = {{"tcp", no_argument, nullptr, 't'},
                                 {"port", required_argument, nullptr, 'p'},
                                 {"depth", required_argument, nullptr, 'd'},
                                 {"block", required_argument, nullptr, 'b'},
                                 {"writes", required_argument, nullptr, 'w'},
                                 {"milliseconds", required_argument, nullptr, 'm'},
                                 {"verify", no_argument, nullptr, 'v'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  options.address = argv[2];
  optind = 3;
  for (int word; (word = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    const unsigned long number = optarg != nullptr ? std::strtoul(optarg, nullptr, 10) : 0;
    switch (word) {
      case 't':
        options.rdma = false;
        break;
      case 'p':
        options.port = static_cast<uint16_t>(number);
        break;
      case 'd':
        options.depth = static_cast<uint32_t>(number);
        break;
      case 'b':
        options.block_bytes = static_cast<uint32_t>(number);
        break;
      case 'w':
        options.writes = static_cast<uint32_t>(number);
        break;
      case 'm':
        options.milliseconds = number;
        break;
      case 'v':
        options.verify = true;
        break;
      default:
        Usage();
    }
  }
  if (optind != argc || options.depth == 0 || options.block_bytes < 16 ||
      options.block_bytes % 8 != 0) {
    Usage();
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) Usage();
  const Options options = Parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::signal(SIGTERM, Stop);
  std::signal(SIGINT, Stop);
  using namespace rocegw::storage_io;
  if (std::strcmp(argv[1], "target") == 0)
    return options.rdma ? RunRdmaTarget(options, &g_stop) : RunTcpTarget(options, &g_stop);
  if (std::strcmp(argv[1], "initiator") == 0)
    return options.rdma ? RunRdmaInitiator(options, &g_stop) : RunTcpInitiator(options, &g_stop);
  Usage();
}
