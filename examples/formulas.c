/* A process with formulas of the state: a quartic Hamiltonian with noise on the momentum. Draws from exp(-H) keep their
 * mean energy when the process moves them, forward in time and, with the score of exp(-H), backward. */
#include <psld.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4000, VARIABLES = 2 };

static const char formulas[] = "name: quartic\n"
                               "H: x^4/8 + m^2/2\n"
                               "D: [[0, 0], [0, 1]]\n"
                               "Q: [[0, -1], [1, 0]]\n"
                               "beta: 2\n";

/* The score of exp(-H) by the variables with noise is minus the gradient of H. */
static psld_status stationary_score(void *user, const psld_states *states, double *score)
{
    const psld_process *process = user;
    int noisy[PSLD_MAX_VARIABLES], count = psld_process_noisy(process, noisy);
    double *gradient = malloc(states->n * VARIABLES * sizeof *gradient);
    if (!gradient) return PSLD_NO_MEMORY;
    psld_status status = psld_process_energy(process, states->n, states->z, NULL, gradient);
    for (size_t i = 0; status == PSLD_OK && i < states->n; i++)
        for (int j = 0; j < count; j++)
            score[i * (size_t)count + (size_t)j] = -gradient[i * VARIABLES + (size_t)noisy[j]];
    free(gradient);
    return status;
}

static psld_status print_energy(const psld_process *process, const char *when, const double *z)
{
    static double H[N];
    double mean = 0;
    psld_status status = psld_process_energy(process, N, z, H, NULL);
    for (int i = 0; i < N; i++) mean += H[i] / N;
    if (status == PSLD_OK) printf("%-22s mean energy %.3f (exactly 0.75)\n", when, mean);
    return status;
}

int main(void)
{
    static double z[N * VARIABLES], back[N * VARIABLES], drift[N * VARIABLES];
    psld_process *process = NULL;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = "em";
    options.nfe = 400;
    psld_status status = psld_process_parse(formulas, "formulas", 1, &process);
    if (status == PSLD_OK) status = psld_process_draw(process, 1, 0, N, z);
    if (status == PSLD_OK) status = psld_process_drift(process, N, z, 0.5, drift, NULL);
    if (status == PSLD_OK) printf("at x = %.3f, m = %.3f the drift is %.3f, %.3f\n", z[0], z[1], drift[0], drift[1]);
    if (status == PSLD_OK) status = print_energy(process, "draws from exp(-H)", z);
    if (status == PSLD_OK) status = psld_process_simulate(process, 2, 0, N, 0, 1, 400, z);
    if (status == PSLD_OK) status = print_energy(process, "moved forward", z);
    if (status == PSLD_OK)
        status = psld_process_sample(process, stationary_score, process, &options, 0, N, z, back, NULL);
    if (status == PSLD_OK) status = print_energy(process, "and back in reverse", back);
    if (status != PSLD_OK) fprintf(stderr, "%s\n", psld_error_text());
    psld_process_free(process);
    return status != PSLD_OK;
}
