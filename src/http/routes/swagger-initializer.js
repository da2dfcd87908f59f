// Starts Swagger UI on the page /docs. Runs in the browser.
(() => {
  /** The credential stays in this tab: a reload keeps it, and closing the tab forgets it. */
  const KEPT = 'authorized';

  const base = document.currentScript.src;
  const urlOf = (path) => new URL(path, base).href;

  /**
   * Prefills "Try it out" with a request for summaries: they hold the newest value of every price,
   * whatever its age. Dates in the document grow old, and each market ends at a day of its own.
   */
  const prefilled = (openapi) => {
    const { parameters, examples } = openapi.components;
    examples.NewestRequest = {
      summary: 'Newest value of every price',
      value: { options: { includeSummary: true } },
    };
    for (const [path, { post }] of Object.entries(openapi.paths)) {
      const body = post?.requestBody?.content['application/json'];
      if (!body || !path.startsWith('/v3/prices/')) continue;
      const newest = { $ref: '#/components/examples/NewestRequest' };
      body.examples = { newest, ...body.examples };
    }
    for (const name of ['dateFrom', 'dateTo', 'includeSeries']) delete parameters[name].example;
    parameters.includeSummary.example = true;
    return openapi;
  };

  const Newest = () => ({
    statePlugins: {
      spec: {
        wrapActions: {
          updateSpec: (original) => (text) => original(JSON.stringify(prefilled(JSON.parse(text)))),
        },
      },
    },
  });

  const KeptInTab = () => ({
    statePlugins: {
      auth: {
        wrapActions: {
          persistAuthorizationIfNeeded: (_original, system) => () => {
            const authorized = system.authSelectors.authorized().toJS();
            sessionStorage.setItem(KEPT, JSON.stringify(authorized));
          },
        },
      },
    },
  });

  window.addEventListener('load', () => {
    const ui = SwaggerUIBundle({
      url: urlOf('../../openapi.json'),
      oauth2RedirectUrl: urlOf('oauth2-redirect.html'),
      dom_id: '#swagger-ui',
      layout: 'StandaloneLayout',
      presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
      plugins: [SwaggerUIBundle.plugins.DownloadUrl, Newest, KeptInTab],
      docExpansion: 'list',
      deepLinking: true,
      validatorUrl: null,
      // Swagger UI would keep it for every tab, and after the last one is closed.
      persistAuthorization: false,
      onComplete: () => {
        const kept = sessionStorage.getItem(KEPT);
        if (kept !== null) ui.authActions.restoreAuthorization({ authorized: JSON.parse(kept) });
      },
    });
  });
})();
