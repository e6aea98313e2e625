// SPDX-License-Identifier: Apache-2.0
// find donors, approve donor; drain, undrain and revoke of donors.
#include "controlplane/cli/commands/donor_commands.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

#include "controlplane/cli/documents/message_fields.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/views/object_views.h"
#include "rocegw/admin/v1/donors.pb.h"

namespace rocegw::cli {
namespace {

using types::v1::Donor;

constexpr std::chrono::milliseconds kLookAgain(500);
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

struct FindQuery {
  std::string tenant = "default";
  std::string size;
  uint32_t replicas = 1;
  uint32_t donors = 0;
  std::string pool;
};

template <typename Request>
CallResult Order(Program& program, const char* method, const std::string& text, Donor& donor) {
  Request request;
  std::string name;
  if (auto result = FullName(*FindKind("donors"), text, {}, name); !result.ok()) return result;
  if (auto result = program.OpenController(); !result.ok()) return result;
  request.set_name(name);
  return program.objects().Write(std::string("/rocegw.admin.v1.Donors/") + method, request,
                                 program.options.write, donor);
}

// Waits until the donor has no leases.
CallResult WaitUntilEmpty(Program& program, const std::string& name) {
  const auto end = std::chrono::steady_clock::now() + program.patience();
  Progress line;
  for (;;) {
    MessagePtr object;
    if (auto result = program.objects().Get(*FindKind("donors"), name, object); !result.ok())
      return result;
    const auto& donor = static_cast<const Donor&>(*object);
    if (IsDrained(donor)) return {};
    if (std::string why = WhyNoWait(donor); !why.empty()) return {kFailed, std::move(why), {}};
    const std::string word = DonorWord(donor);
    const std::string left = std::to_string(donor.status().leases()) + " leases, " +
                             QuantityText(donor.status().leased_bytes(), Unit::kBytes) + " left";
    if (std::chrono::steady_clock::now() >= end) {
      return {kDeadline,
              name + " is not empty in time (--timeout): " + word + ", " + left + "; it goes on",
              {}};
    }
    line.Show(ShortName(name) + ": " + left);
    std::this_thread::sleep_for(kLookAgain);
  }
}

void Print(Program& program, const Donor& donor, const char* what) {
  if (program.is_table()) {
    std::cout << donor.name() << " " << what << "\n";
    return;
  }
  std::vector<MessagePtr> one;
  one.push_back(std::make_unique<Donor>(donor));
  PrintObjects(program, *FindKind("donors"), one, true);
}

int Find(Program& program, const FindQuery& query) {
  admin::v1::FindDonorsRequest request;
  uint64_t bytes = 0;
  if (auto result = ReadAmount("--size", query.size, Unit::kBytes, kMostBytes, bytes); !result.ok())
    return Fail(result);
  request.set_tenant(NameIn("tenants", query.tenant));
  request.set_bytes(bytes);
  request.set_replicas(query.replicas);
  request.set_donors(query.donors);
  request.set_pool(query.pool);
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::FindDonorsResponse response;
  if (auto result = program.rpc().Call("/rocegw.admin.v1.Donors/FindDonors", request, response);
      !result.ok()) {
    return Fail(result);
  }
  if (PrintDocument(program, response)) return kOk;
  if (program.options.format == "name") {
    for (const types::v1::FoundDonor& donor : response.donors()) std::cout << donor.name() << "\n";
    return kOk;
  }
  Table table;
  table.AddColumn("NAME", Column::kLeft);
  table.AddColumn("FREE", Column::kRight);
  table.AddColumn("DOMAIN", Column::kLeft);
  table.AddColumn("ADDRESS", Column::kLeft);
  for (const types::v1::FoundDonor& donor : response.donors()) {
    const std::string address = donor.addresses().empty() ? "-" : donor.addresses(0);
    table.AddRow({ShortName(donor.name()), QuantityText(donor.free_bytes(), Unit::kBytes),
                  donor.failure_domain(), address + " port " + std::to_string(donor.port())});
  }
  std::cout << table.NextText(program.line_limit(), Program::colour());
  return kOk;
}

}  // namespace

int DrainDonor(Program& program, const std::string& text, bool wait) {
  Donor donor;
  if (auto result = Order<admin::v1::DrainDonorRequest>(program, "DrainDonor", text, donor);
      !result.ok())
    return Fail(result);
  if (!wait) {
    Print(program, donor, "draining");
    return kOk;
  }
  if (auto result = WaitUntilEmpty(program, donor.name()); !result.ok()) return Fail(result);
  Print(program, donor, "drained");
  return kOk;
}

int UndrainDonor(Program& program, const std::string& text) {
  Donor donor;
  if (auto result = Order<admin::v1::UndrainDonorRequest>(program, "UndrainDonor", text, donor);
      !result.ok())
    return Fail(result);
  Print(program, donor, "in service");
  return kOk;
}

int ApproveDonor(Program& program, const std::string& text) {
  Donor donor;
  if (auto result = Order<admin::v1::ApproveDonorRequest>(program, "ApproveDonor", text, donor);
      !result.ok()) {
    return Fail(result);
  }
  Print(program, donor, "approved");
  return kOk;
}

int RevokeDonor(Program& program, const std::string& text) {
  Donor donor;
  if (auto result = Order<admin::v1::RevokeDonorRequest>(program, "RevokeDonor", text, donor);
      !result.ok()) {
    return Fail(result);
  }
  Print(program, donor, "revoked");
  return kOk;
}

void AddDonorCommands(CLI::App& app, Program& program) {
  const auto approved = std::make_shared<std::string>();
  CLI::App* const approve =
      program.Add(app, "approve", "let the fleet put data on a donor of memory", "", nullptr);
  program
      .Add(*approve, "donor", "one that its agent has announced",
           "  rocegwctl approve donor host-a/donor\n"
           "Back: rocegwctl revoke donor host-a/donor.",
           [&program, approved] { return ApproveDonor(program, *approved); })
      ->add_option("DONOR", *approved, "GATEWAY/DONOR")
      ->required();
  const auto query = std::make_shared<FindQuery>();
  CLI::App* const find =
      program.Add(app, "find", "donors of memory with room for a tenant", "", nullptr);
  CLI::App* const donors =
      program.Add(*find, "donors", "those that a session should use, best first",
                  "  rocegwctl find donors --tenant blue --size 16GiB --replicas 2\n"
                  "Replicas are in different failure domains. Programs find them by their agent:\n"
                  "rocegw-memory mount --donors fleet.",
                  [&program, query] { return Find(program, *query); });
  donors->add_option("-t,--tenant", query->tenant, "whose sessions; default: default")
      ->type_name("TENANT");
  donors->add_option("--size", query->size, "of the session's space, as 16GiB")
      ->type_name("SIZE")
      ->required();
  donors->add_option("--replicas", query->replicas, "of each page")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 4).description(""))
      ->capture_default_str();
  donors->add_option("--donors", query->donors, "how many to name if there are so many; default: 8")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 64).description(""));
  donors->add_option("--pool", query->pool, "shared block pool of the tenant: all its donors")
      ->type_name("POOL");
}

}  // namespace rocegw::cli
