// SPDX-License-Identifier: Apache-2.0
// audit list, audit verify.
#include <algorithm>
#include <iostream>

#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/table.h"
#include "rocegw/admin/v1/operations.pb.h"

namespace rocegw::cli {
namespace {

constexpr char kAuditService[] = "/rocegw.admin.v1.Audit/";
constexpr int32_t kMostInPage = 1000;

struct AuditQuery {
  std::string resource;
  size_t limit = 0;
  std::string known_head;
};

CallResult ReadRecords(Program& program, const AuditQuery& query,
                       admin::v1::ListRecordsResponse& all) {
  admin::v1::ListRecordsRequest request;
  request.set_resource(query.resource);
  const auto limit = static_cast<int>(query.limit);
  do {
    const int left = limit == 0 ? kMostInPage : limit - all.records_size();
    request.set_page_size(std::min(left, kMostInPage));
    admin::v1::ListRecordsResponse page;
    CallResult result =
        program.rpc().Call(kAuditService + std::string("ListRecords"), request, page);
    if (!result.ok()) return result;
    all.mutable_records()->MergeFrom(page.records());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && (limit == 0 || all.records_size() < limit));
  return {};
}

int List(Program& program, const AuditQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::ListRecordsResponse all;
  if (auto result = ReadRecords(program, query, all); !result.ok()) return Fail(result);
  const std::string& format = program.options.format;
  if (format == "json" || format == "yaml") {
    std::cout << (format == "json" ? JsonText(all) : YamlText(all));
    return kOk;
  }
  Table table;
  table.AddColumn("REVISION", Column::kRight);
  table.AddColumn("TIME", Column::kLeft);
  table.AddColumn("CALL", Column::kLeft);
  if (program.wide()) {
    table.AddColumn("FROM", Column::kLeft);
    table.AddColumn("REQUEST-ID", Column::kLeft);
  }
  table.AddColumn("WHO", Column::kCut);
  table.AddColumn("RESOURCE", Column::kCut);
  for (const auto& record : all.records()) {
    std::vector<std::string> cells = {std::to_string(record.revision()),
                                      TimeText(record.time().seconds()),
                                      record.method().substr(record.method().rfind('/') + 1)};
    if (program.wide()) {
      cells.push_back(record.peer());
      cells.push_back(record.request_id());
    }
    cells.push_back(record.principal());
    cells.push_back(record.resource());
    table.AddRow(std::move(cells));
  }
  std::cout << table.Text(program.line_limit(), Program::colour());
  return kOk;
}

int Verify(Program& program, const AuditQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::VerifyRequest request;
  request.set_known_head(query.known_head);
  admin::v1::VerifyResponse response;
  if (auto result = program.rpc().Call(kAuditService + std::string("Verify"), request, response);
      !result.ok()) {
    return Fail(result);
  }
  const std::string& format = program.options.format;
  if (format == "json" || format == "yaml") {
    std::cout << (format == "json" ? JsonText(response) : YamlText(response));
  } else if (response.intact()) {
    std::cout << "intact: " << response.records() << " records, head " << response.head() << "\n";
    if (response.unsealed() != 0) {
      std::cout << response.unsealed() << " newest records are not sealed yet\n";
    }
  } else {
    std::cout << "NOT INTACT at revision " << response.revision() << ": " << response.problem()
              << "\n";
  }
  return response.intact() ? kOk : kConditionFalse;
}

}  // namespace

void AddAuditCommands(CLI::App& app, Program& program) {
  const auto query = std::make_shared<AuditQuery>();
  CLI::App* const audit = program.Add(app, "audit", "who changed what: list, verify",
                                      "  rocegwctl audit list --resource tenants/blue\n"
                                      "  rocegwctl audit verify --known-head r123:ab12...",
                                      nullptr);
  CLI::App* const list = program.Add(*audit, "list", "records of all writes of the API", "",
                                     [&program, query] { return List(program, *query); });
  list->add_option("--resource", query->resource, "only of this: tenants/blue")->type_name("NAME");
  list->add_option("--limit", query->limit, "at most so many")->type_name("N");
  CLI::App* const verify = program.Add(*audit, "verify", "is the records' chain intact? 10: no", "",
                                       [&program, query] { return Verify(program, *query); });
  verify
      ->add_option("--known-head", query->known_head,
                   "a head printed before: finds an end that was cut")
      ->type_name("HEAD");
}

}  // namespace rocegw::cli
