#include "serve_jobs.h"
#include "serve_runs.h"
#define T(x) enum MHD_Result x(serve_request *r) { return serve_refuse(r, 501, "not yet"); }
T(serve_runs_list) T(serve_runs_post) T(serve_run_get) T(serve_run_log) T(serve_run_events) T(serve_run_resume) T(serve_run_stop) T(serve_sweeps_list) T(serve_sweep_get)
void serve_runs_look(void) {}
void serve_runs_stop(void) {}
int serve_runs_wait(double s) { (void)s; return 0; }
