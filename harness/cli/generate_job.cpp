// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/generate_job.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "conformance/digest.hpp"
#include "conformance/file.hpp"
#include "harness/interruption.hpp"
#include "harness/usage_error.hpp"
#include "harness/value_text.hpp"
#include "vectors/corpus_join.hpp"
#include "vectors/generate_corpus.hpp"
#include "vectors/generate_parts.hpp"
#include "vectors/generate_ranks.hpp"
#include "vectors/progress_line.hpp"
#include "vectors/schema.hpp"

namespace qkcts::cli {
namespace {

constexpr double absurd_bytes = 64e9, absurd_seconds = 48 * 3600;
constexpr std::size_t most_listed = 20;

// After the first large array glibc keeps the next in the arena of its thread, where little of it is given back: a long
// cache would stay in memory to the end of the suite. What is smaller is kept for the next case: to give it back and to
// fault it in again takes a quarter of the time of a proof.
void give_back_large_arrays() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

// Version and bytes of this program: another build may compute otherwise, and must not go on where this one stopped.
std::string program_identity() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Sha256 digest;
  std::vector<char> chunk(1U << 20U);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0)
    digest.update(std::as_bytes(std::span(chunk.data(), static_cast<std::size_t>(file.gcount()))));
  return fmt::format("qkcts {} {}", QKCTS_VERSION, digest.finish());
}

struct Estimate {
  bool absurd = false;
  std::string text;
};

Estimate estimate_of(const Plan& plan, unsigned jobs) {
  double seconds = 0, bytes = 0;
  for (const PlannedCase& planned : plan.cases) {
    seconds += estimated_seconds(planned) / jobs;
    bytes += estimated_bytes(planned);
  }
  return {bytes > absurd_bytes || seconds > absurd_seconds,
          fmt::format("{}, about {} on {}, at most about {}", counted(plan.cases.size(), "case", "cases"),
                      duration_text(seconds), counted(jobs, "thread", "threads"), byte_text(bytes))};
}

std::string checked_outlook(const Plan& plan, unsigned jobs) {
  const Estimate estimate = estimate_of(plan, jobs);
  if (estimate.absurd)
    throw InputError(
        fmt::format("{}: that is more than this command takes on; split the plan or store fewer rows", estimate.text));
  return estimate.text;
}

template <class Item, class Text>
void list_items(const std::vector<Item>& items, const Text& text, std::string& lines) {
  for (std::size_t i = 0; i < std::min(items.size(), most_listed); ++i)
    lines += fmt::format("qkcts: {}\n", text(items[i]));
  if (items.size() > most_listed) lines += fmt::format("qkcts: ... and {} more\n", items.size() - most_listed);
}

std::string findings_of(const GenerateReport& report) {
  std::string lines;
  list_items(
      report.dropped,
      [](const DroppedProfile& d) {
        return fmt::format("{}: not judged by profile {}: {:.1f} % of stage {} is mistrusted", d.slug, d.profile,
                           100 * d.share, d.stage);
      },
      lines);
  list_items(
      report.refused, [](const RefusedCase& r) { return fmt::format("{}: refused: {}", r.slug, r.reason); }, lines);
  return lines;
}

std::string unfit_of(const Plan& plan) {
  std::string lines;
  list_items(
      plan.unfit, [](const Plan::Unfit& u) { return fmt::format("{}: left out: {}", u.slug, u.reason); }, lines);
  return lines;
}

class Watch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

GenerateReport generate_file(const Plan& plan, const std::string& path, GenerateOptions options, bool shows_progress) {
  options.generator_version = fmt::format("qkcts {}", QKCTS_VERSION);
  if (options.resume) options.program = program_identity();
  std::unique_ptr<ProgressLine> line;
  if (shows_progress) line = std::make_unique<ProgressLine>("generated", stderr);
  options.progress = [&line](const GenerateProgress& p) {
    if (line) line->update(p.done, p.all, p.work_all > 0 ? p.work_done / p.work_all : 1, p.slug);
  };
  try {
    return generate_corpus(plan, path, options);
  } catch (const WriteError& error) {
    if (!options.resume) throw;
    throw WriteError(fmt::format("{}; what is finished stays in {}.part", error.what(), path));
  }
}

GenerateOptions options_of(const GenerateJob& job, const Plan& whole, unsigned jobs) {
  GenerateOptions options;
  options.jobs = jobs;
  options.tier = job.tier;
  options.resume = job.resume;
  if (job.shard) options.shard = shard_text(*job.shard);
  if (job.shard || job.resume) options.plan_digest = plan_digest(whole);
  return options;
}

unsigned processors() {
  return std::max(1U, std::thread::hardware_concurrency());
}

int run_alone(const std::function<Plan()>& make_plan, const GenerateJob& job,
              const std::function<void(const Plan&)>& estimated) {
  const Plan whole = make_plan();
  const Plan plan = job.shard ? cut_plan(whole, *job.shard) : whole;
  const unsigned jobs = job.jobs != 0 ? job.jobs : processors();
  if (job.estimate_only) {
    fmt::print("{}\n", estimate_of(plan, jobs).text);
    estimated(plan);
    return 0;
  }
  fmt::print(stderr, "{}: {}\n", job.output, checked_outlook(plan, jobs));
  catch_interruption();
  const Watch watch;
  GenerateOptions options = options_of(job, whole, jobs);
  options.stopped = [] { return interruption() != 0; };
  GenerateReport report;
  try {
    report = generate_file(plan, job.output, options, true);
  } catch (const Interrupted& interrupted) {
    fmt::print(stderr, "qkcts: {}{}\n", interrupted.what(),
               job.resume ? "; the same command goes on from there" : "; --resume would have kept them");
    return 128 + interruption();
  }
  fmt::print("{}: {}, {}, {:.1f} s\ndigest {}\n", job.output, counted(report.written, "case", "cases"),
             byte_text(static_cast<double>(std::filesystem::file_size(job.output))), watch.seconds(), report.digest);
  if (report.relations != 0)
    fmt::print("{}, {} left out, for its inputs do not bring them out\n",
               counted(report.relations, "relation", "relations"), report.silent_relations.size());
  if (report.unjudged != 0)
    fmt::print("{} left out: no profile can judge them\n", counted(report.unjudged, "case", "cases"));
  if (report.resumed != 0) fmt::print(stderr, "qkcts: {} of them were there already\n", report.resumed);
  fmt::print(stderr, "{}{}", unfit_of(plan), findings_of(report));
  return report.dropped.empty() && report.refused.empty() ? 0 : 1;
}

// ---- as one of several processes ------------------------------------------------------------------------------------

// What a rank has to tell the others: an exit code of this program, and a text.
struct Outcome {
  int code = 0;
  std::string text;
};

template <class Work>
Outcome attempt(const Work& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    return {2, error.what()};
  } catch (const InputError& error) {
    return {3, error.what()};
  } catch (const Interrupted& error) {
    return {128 + interruption(), error.what()};
  } catch (const std::exception& error) {
    return {6, error.what()};
  }
}

bool is_error(int code) {
  return code > 1;
}

std::string packed(const Outcome& outcome) {
  return fmt::format("{} {}", outcome.code, outcome.text);
}

Outcome unpacked(const std::string& text) {
  const std::size_t space = text.find(' ');
  return {std::stoi(text.substr(0, space)), text.substr(space + 1)};
}

// All ranks come here with what became of a step. If one of them failed, rank 0 says what befell the first, and all end
// with its code. A rank that only stopped because another failed has the code 128, which gives way to any other.
std::optional<int> common_end(Ranks& ranks, const Outcome& mine, std::string* texts) {
  std::optional<Outcome> first;
  unsigned failed = 0, rank = 0;
  for (const std::string& text : ranks.gathered(packed(mine))) {
    const Outcome outcome = unpacked(text);
    if (is_error(outcome.code) && (!first || (first->code == 128 && outcome.code != 128))) {
      first = outcome;
      failed = rank;
    }
    if (texts != nullptr) *texts += outcome.text;
    ++rank;
  }
  if (!first) return std::nullopt;
  if (ranks.rank() == 0) fmt::print(stderr, "qkcts: process {} of {}: {}\n", failed + 1, ranks.size(), first->text);
  return first->code;
}

// core.h5 -> core.2of3.h5, beside it.
std::string shard_file(const std::string& output, Shard shard) {
  const std::filesystem::path path(output);
  return (path.parent_path() /
          fmt::format("{}.{}of{}{}", path.stem().string(), shard.index, shard.count, path.extension().string()))
      .string();
}

int run_as_rank(Ranks& ranks, const std::function<Plan()>& make_plan, GenerateJob job) {
  catch_interruption();
  const Watch watch;
  const Shard shard{ranks.rank() + 1, ranks.size()};
  const unsigned jobs = job.jobs != 0 ? job.jobs : 1;
  const std::string mine = shard_file(job.output, shard);

  Plan whole, plan;
  const Outcome planned = attempt([&] {
    if (job.shard) throw UsageError("--shard is given by mpirun here, one to each process");
    if (job.estimate_only) throw UsageError("--estimate needs no mpirun");
    if (ranks.size() > schema::most_shards)
      throw UsageError(fmt::format("at most {} processes can share a plan", schema::most_shards));
    whole = make_plan();
    plan = cut_plan(whole, shard);
    return Outcome{0, checked_outlook(plan, jobs)};
  });
  if (const std::optional<int> end = common_end(ranks, planned, nullptr)) return *end;
  job.shard = shard;
  if (ranks.rank() == 0)
    fmt::print(stderr, "{}: {} in {} files; the first: {}\n", job.output, counted(whole.cases.size(), "case", "cases"),
               ranks.size(), planned.text);

  const Outcome generated = attempt([&] {
    GenerateOptions options = options_of(job, whole, jobs);
    options.keep_parts = true;  // until the others are at their end too
    options.stopped = [&ranks] { return interruption() != 0 || ranks.another_failed(); };
    const GenerateReport report = generate_file(plan, mine, options, ranks.rank() == 0);
    return Outcome{report.dropped.empty() && report.refused.empty() ? 0 : 1, findings_of(report)};
  });
  if (is_error(generated.code) && !ranks.another_failed()) ranks.tell_failure();
  std::string findings;
  if (const std::optional<int> end = common_end(ranks, generated, &findings)) return *end;

  JoinReport joined;
  const Outcome join = attempt([&] {
    if (ranks.rank() != 0) return Outcome{};
    std::vector<std::string> files;
    for (unsigned i = 1; i <= ranks.size(); ++i) files.push_back(shard_file(job.output, {i, ranks.size()}));
    joined = join_corpora(files, job.output);
    return Outcome{};
  });
  if (const std::optional<int> end = common_end(ranks, join, nullptr)) return *end;
  if (job.resume) remove_parts(mine + ".part");
  if (ranks.rank() == 0) {
    fmt::print("{}: {} in {}, {:.1f} s\ndigest {}\n", job.output, counted(joined.cases, "case", "cases"),
               counted(ranks.size(), "file", "files"), watch.seconds(), joined.digest);
    fmt::print(stderr, "{}{}", unfit_of(plan), findings);
  }
  return findings.empty() ? 0 : 1;
}

}  // namespace

int run_generate_job(const std::function<Plan()>& plan, const GenerateJob& job,
                     const std::function<void(const Plan&)>& estimated) {
  give_back_large_arrays();
  if (!started_as_rank()) return run_alone(plan, job, estimated);
  if (!knows_ranks())
    throw UsageError(
        "mpirun started several processes, but this program was built without MPI (QKCTS_MPI); --shard I/N "
        "and `vectors join` do without");
  Ranks ranks;
  return run_as_rank(ranks, plan, job);
}

}  // namespace qkcts::cli
