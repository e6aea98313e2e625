// SPDX-License-Identifier: Apache-2.0
// rocegw-memory: memory of other hosts. This file reads the command line.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "gateway/far/link/protocol.h"
#include "gateway/far/program/donors/blocks.h"
#include "gateway/far/program/donors/donate.h"
#include "gateway/far/program/mount.h"
#include "gateway/far/program/status.h"
#include "gateway/far/program/swap/swap.h"
#include "gateway/far/shared_pool/shared_pool.h"
#include "gateway/process/build_info.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/log/logging.h"
#include "gateway/process/output.h"

namespace rocegw::far {
namespace {

constexpr char kDefaultMetrics[] = "127.0.0.1:7476";
constexpr char kMountMetrics[] = "127.0.0.1:7477";
constexpr char kSwapMetrics[] = "127.0.0.1:7478";
constexpr char kBlocksMetrics[] = "127.0.0.1:7480";
constexpr char kSwapDirectory[] = "/run/rocegw-memory-swap";

constexpr char kFooter[] =
    "Any verbs device will do. On a host with an RDMA gateway, start the program with\n"
    "rocegw-run.\n"
    "\n"
    "Exit status: 0 stopped as asked, 2 wrong usage, 3 the machine lacks something (a device, a\n"
    "free port, memory), 70 a bug.\n"
    "\n"
    "Examples:\n"
    "  rocegw-run -- rocegw-memory donate --size 8GiB           offers memory of this host\n"
    "  rocegw-memory status                                     what of it is leased\n"
    "  rocegw-run -- rocegw-memory blocks --size 8GiB --secret /etc/rocegw/pool.secret\n"
    "                                                           offers it as a shared block pool\n"
    "  rocegw-run -- rocegw-memory mount /mnt/far --size 16GiB --replicas 2 --donor a --donor b\n"
    "                                                           files in the memory of a and b\n"
    "  rocegw-run -- rocegw-memory swap --size 16GiB --replicas 2 --donor a --donor b\n"
    "                                                           swap there";

// Sizes have binary units: 8GiB, 8GB and 8G are the same.
CLI::AsSizeValue Size() { return CLI::AsSizeValue(false); }

// Options of a donor that is one of the fleet; the same for donate and blocks.
void AddAnnounced(CLI::App& command, std::string& folder, std::string& name) {
  command
      .add_option("--announce", folder,
                  "folder in which the agent of this host looks for donors (donors_dir): the\n"
                  "donor is one of the fleet")
      ->type_name("DIRECTORY");
  command.add_option("--name", name, "of this donor in the fleet, unique on the host")
      ->type_name("NAME")
      ->capture_default_str();
}

void AddDonate(CLI::App& app, DonateArguments& arguments, std::vector<std::string>& quotas) {
  CLI::App* donate = app.add_subcommand("donate", "offer memory of this host");
  donate->add_option("--size", arguments.limits.donated_bytes, "memory to offer, as 8GiB")
      ->type_name("SIZE")
      ->required()
      ->transform(Size());
  donate->add_option("--address", arguments.address, "address to listen at; default: all")
      ->type_name("ADDRESS");
  arguments.port = std::to_string(kDefaultPort);
  donate->add_option("--port", arguments.port, "RDMA port to listen at")
      ->type_name("PORT")
      ->capture_default_str();
  donate
      ->add_option("--tenant-size", arguments.limits.tenant_bytes,
                   "most that one tenant may lease; default: all")
      ->type_name("SIZE")
      ->transform(Size());
  donate
      ->add_option("--quota", quotas,
                   "most that this tenant may lease, over --tenant-size; 0: none")
      ->type_name("TENANT=SIZE");
  donate
      ->add_option("--lease", arguments.limits.lease_seconds,
                   "seconds after which leases of a silent session end")
      ->type_name("SECONDS")
      ->check(CLI::Range(6, 3600).description(""))
      ->capture_default_str();
  AddAnnounced(*donate, arguments.announce, arguments.name);
  arguments.metrics = kDefaultMetrics;
  donate->add_option("--metrics", arguments.metrics, "address of the metrics page; '': none")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
}

void AddBlocks(CLI::App& app, BlocksArguments& arguments) {
  CLI::App* blocks =
      app.add_subcommand("blocks", "offer memory of this host as a block pool that programs share");
  blocks->add_option("--size", arguments.bytes, "memory to offer, as 8GiB")
      ->type_name("SIZE")
      ->required()
      ->transform(Size());
  blocks
      ->add_option("--secret", arguments.secret,
                   "file with 16 to 64 bytes; programs that have them are members of the pool")
      ->type_name("FILE")
      ->required();
  blocks
      ->add_option("--block", arguments.block_bytes,
                   "most bytes of a value: a multiple of 4KiB, at most 16MiB; default: 64KiB")
      ->type_name("SIZE")
      ->transform(Size());
  blocks->add_option("--address", arguments.address, "address to listen at; default: all")
      ->type_name("ADDRESS");
  arguments.port = std::to_string(SharedPool::kPort);
  blocks->add_option("--port", arguments.port, "RDMA port to listen at")
      ->type_name("PORT")
      ->capture_default_str();
  AddAnnounced(*blocks, arguments.announce, arguments.name);
  blocks->add_option("--pool", arguments.pool, "with --announce: name of the block pool")
      ->type_name("POOL")
      ->capture_default_str();
  blocks
      ->add_option("--tenant", arguments.tenant,
                   "with --announce: whose pool it is; its quota and limit apply")
      ->type_name("NAME")
      ->capture_default_str();
  arguments.metrics = kBlocksMetrics;
  blocks->add_option("--metrics", arguments.metrics, "address of the metrics page; '': none")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
}

// Returns false after a line on stderr.
bool IsBlockSize(uint64_t bytes) {
  if (bytes != 0 && bytes % TableShape::kPage == 0 && bytes <= ROCEGW_MEMORY_MOST_BLOCK_BYTES) {
    return true;
  }
  std::cerr << "rocegw-memory: --block is a multiple of 4KiB, at most 16MiB\n";
  return false;
}

// Options of the session that files are kept in; the same for mount and swap.
void AddSession(CLI::App& command, FilesArguments& arguments, const char* metrics) {
  CLI::Option* named =
      command.add_option("--donor", arguments.donors, "host that donates; once for each donor")
          ->type_name("HOST[:PORT]");
  command
      .add_option("--donors", arguments.donors_from,
                  "fleet: the controller chooses donors with room, in different failure domains")
      ->type_name("fleet")
      ->check(CLI::IsMember({"fleet"}).description(""))
      ->excludes(named);
  command
      .add_option("--donors-dir", arguments.donors_dir,
                  "with --donors: folder in which the agent of this host answers (donors_dir)")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  command.add_option("--size", arguments.size, "bytes to use, as 16GiB")
      ->type_name("SIZE")
      ->required()
      ->transform(Size());
  command.add_option("--replicas", arguments.replicas, "donors that hold each page")
      ->type_name("COUNT")
      ->check(CLI::Range(1u, kMostReplicas).description(""))
      ->capture_default_str();
  command.add_option("--tenant", arguments.tenant, "name that quotas of donors apply to")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--slab", arguments.slab_bytes, "unit of leases: a power of two; default: 64MiB")
      ->type_name("SIZE")
      ->transform(Size());
  command
      .add_option("--disk-copy", arguments.disk_copy,
                  "file that gets all writes as well, and serves when no donor does")
      ->type_name("FILE");
  command
      .add_option("--timeout", arguments.timeout_ms,
                  "milliseconds after which a donor that completes nothing is lost")
      ->type_name("MS")
      ->check(CLI::Range(100, 3600000).description(""))
      ->capture_default_str();
  arguments.metrics = metrics;
  command.add_option("--metrics", arguments.metrics, "address of the metrics page; '': none")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
}

void AddMount(CLI::App& app, FilesArguments& arguments) {
  CLI::App* mount = app.add_subcommand("mount", "mount a file system in the memory of donors");
  mount->add_option("directory", arguments.directory, "where to mount")
      ->type_name("DIRECTORY")
      ->required();
  AddSession(*mount, arguments, kMountMetrics);
  mount->add_flag(
      "--keep", arguments.keep,
      "files outlive the command: the next one with this --disk-copy or --names has them\n"
      "again; without --disk-copy as long as the donors' leases last");
  mount
      ->add_option(
          "--names", arguments.names,
          "with --keep: file for the names of the files; without --disk-copy also for the\n"
          "way to their data (FILE.donors); default: the disk copy's path and .names")
      ->type_name("FILE");
  mount->add_flag("--allow-other", arguments.allow_other,
                  "other users may use the files, as their permissions say");
  mount->add_flag("--write-back", arguments.write_back,
                  "the kernel gathers writes and writes them later; fsync waits for them");
}

void AddSwap(CLI::App& app, SwapArguments& arguments) {
  CLI::App* swap = app.add_subcommand("swap", "swap of this host in the memory of donors (root)");
  AddSession(*swap, arguments.files, kSwapMetrics);
  swap->add_option("--priority", arguments.priority,
                   "of this swap, higher ones are used first; default: the kernel chooses")
      ->type_name("NUMBER")
      ->check(CLI::Range(0, 32767).description(""));
  const std::map<std::string, SwapDevice> devices{
      {"auto", SwapDevice::kAuto}, {"nbd", SwapDevice::kNbd}, {"loop", SwapDevice::kLoop}};
  swap->add_option(
          "--device", arguments.device,
          "auto, nbd (driver nbd of the kernel) or loop (over a mounted file); default: auto")
      ->type_name("DEVICE")
      ->transform(CLI::CheckedTransformer(devices).description(""));
  arguments.files.directory = kSwapDirectory;
  swap->add_option("--directory", arguments.files.directory, "where the swap file is mounted")
      ->type_name("DIRECTORY")
      ->capture_default_str();
}

// Returns false after a line on stderr.
bool ReadQuotas(const std::vector<std::string>& quotas, LeaseLedger::Limits& limits) {
  for (const std::string& quota : quotas) {
    const size_t equals = quota.find('=');
    std::string size = equals != std::string::npos ? quota.substr(equals + 1) : "";
    if (size.empty() || equals == 0 || !Size()(size).empty()) {
      std::cerr << "rocegw-memory: --quota " << quota << ": not TENANT=SIZE\n";
      return false;
    }
    limits.tenants[quota.substr(0, equals)] = std::stoull(size);
  }
  return true;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Memory of other hosts: offers memory of this one, and keeps files and swap in theirs.");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Print the help of all commands and exit");
  app.set_version_flag("--version", "rocegw-memory " + process::VersionText());
  DonateArguments donate;
  std::vector<std::string> quotas;
  AddDonate(app, donate, quotas);
  BlocksArguments blocks;
  AddBlocks(app, blocks);
  FilesArguments files;
  AddMount(app, files);
  SwapArguments swap;
  AddSwap(app, swap);
  std::string metrics = kDefaultMetrics;
  app.add_subcommand("status", "show what is donated and leased")
      ->add_option("--metrics", metrics, "address of the metrics page")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? process::kOk : process::kUsage;
  }
  if (app.got_subcommand("status")) return ShowStatus(metrics);
  if (!ReadQuotas(quotas, donate.limits) || !IsBlockSize(blocks.block_bytes)) {
    return process::kUsage;
  }
  donate.version = blocks.version = process::Version();
  process::StartLogging("rocegw-memory", process::LogLevel::kInfo);
  if (app.got_subcommand("blocks")) return ServeBlocks(blocks);
  if (app.got_subcommand("mount")) return Mount(files);
  if (app.got_subcommand("swap")) return Swap(swap);
  return Donate(donate);
}

}  // namespace
}  // namespace rocegw::far

int main(int argc, char** argv) {
  try {
    return rocegw::process::FinishOutput("rocegw-memory", rocegw::far::Main(argc, argv),
                                         rocegw::process::kEnvironment);
  } catch (const std::exception& error) {
    std::cerr << "rocegw-memory: internal error: " << error.what() << "\n";
    return rocegw::process::kInternal;
  }
}
